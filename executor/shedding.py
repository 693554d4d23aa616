"""What is shed of a micro-batch: decided once, before its rows are packed, and the same in every attempt.

A decision is a file beside the state, ``shed/<micro-batch>``. The first task that writes it decides; all
others, and later attempts, read it. It follows from the state after the micro-batch before, from how long
that was busy with rows, and from the decision before it.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from wjoin.executor.state.manifest import Manifest, written_manifest
from wjoin.executor.state.starting import SHED
from wjoin.executor.state.worker_files import (
    KEPT,
    damaged,
    numbers,
    read_manifest,
    stage_folder,
    worker_folder,
    write_once,
)
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import plain, typed
from wjoin.parts.kernels.runs import BoolArray, Int64Array, int64_view
from wjoin.planner.cost.shed_share import (
    MOST_LOAD,
    came_in,
    state_utilization,
    time_utilization,
    unshed,
)
from wjoin.planner.figures import size
from wjoin.planner.plan.shedding_models import Shedding, StreamShedding

_MOST_REMEMBERED = 64
"""Earlier decisions whose lost rows are remembered one by one."""


@dataclass(frozen=True)
class Decision:
    """What is decided of a micro-batch.

    ``state`` and ``time``: the utilisations after the one before. ``demand``: what that of the time would be
    if nothing were shed. ``ratios``: the share of its rows that each stream sheds, by its number; ``lost``:
    that of the results; ``lost_most``: the greatest of these among the micro-batches whose rows may still be
    met; ``before`` has the newest event time and the ``lost`` of these, ascending.
    """

    state: float
    time: float
    demand: float
    ratios: dict[int, float]
    lost: float
    lost_most: float
    before: tuple[tuple[int, float], ...]

    @property
    def utilization(self) -> float:
        """τ: the worse of the two."""
        return max(self.state, self.time)


NOTHING = Decision(0.0, 0.0, 0.0, {}, 0.0, 0.0, ())
"""Nothing is shed, as in the first micro-batch."""


@dataclass(frozen=True)
class Measured:
    """What is known before a micro-batch: bytes of ``state`` and on ``disk``; by stream the greatest event
    time that was ``seen`` and that seen one micro-batch earlier, empty where there was none; the seconds from
    the first row that was packed to the last worker's state, None where they are not known; the clock."""

    state: int
    disk: int
    seen: dict[int, int]
    seen_before: dict[int, int]
    busy: float | None
    clock: float


def next_decision(shedding: Shedding, last: Decision, found: Measured, delays: Sequence[int]) -> Decision:
    """Return what to shed of a micro-batch, after the ``last`` one.

    ``delays``: those of the streams, by their numbers. Pure.
    """
    rules = shedding.rules
    state = max(state_utilization(found.state, rules.memory), state_utilization(found.disk, rules.disk))
    load, demand = 0.0, last.demand
    came = came_in(found.seen, found.seen_before, found.clock) if shedding.clocked else None
    if came is not None and found.busy is not None:
        load = min(MOST_LOAD, time_utilization(found.busy, shedding.fixed, came, rules.interval))
        without = unshed(load, max(last.ratios.values(), default=0.0))
        demand = without if not last.demand else (last.demand + without) / 2
    ratios = shedding.ratios(state, demand)
    lost = shedding.lost(ratios)
    before = _remembered(shedding, last, found, delays)
    lost_most = max([lost, *(each for _, each in before)])
    return Decision(state, load, demand, ratios, lost, lost_most, before)


def _remembered(
    shedding: Shedding, last: Decision, found: Measured, delays: Sequence[int]
) -> tuple[tuple[int, float], ...]:
    """Return the lost shares of those micro-batches whose rows could still be met."""
    if not found.seen:
        return ()
    newest = max(found.seen.values())
    known = [*last.before, *([(newest, last.lost)] if last.lost > 0 else [])]
    if shedding.reach is not None:
        passed = min(time - delays[stream] for stream, time in found.seen.items()) - shedding.reach
        known = [each for each in known if each[0] >= passed]
    if len(known) > _MOST_REMEMBERED:
        known = [(newest, max(each for _, each in known))]
    return tuple(known)


@dataclass(frozen=True)
class Shedder:
    """Sheds rows of a join whose state is in ``folder``; ``workers`` are those of each stage.

    A relative folder lies below what the tasks are told. ``delays``: those of the streams, by their numbers.
    """

    shedding: Shedding
    folder: Path
    workers: tuple[int, ...]
    delays: tuple[int, ...]

    def decision(self, folder: Path, number: int) -> Decision:
        """Return what is decided of micro-batch ``number``, or decide it; the state lies in ``folder``.

        Raises WJoinError WJ725 where the state is above its limit and not all streams are shed, WJ718 where
        the decision cannot be written, and WJ719 where one is damaged.
        """
        own = folder / SHED
        found = _read(own, number)
        if found is not None or not self.shedding.watches:
            return found or NOTHING
        earlier = [each for each in _known(own) if each < number]
        last = (_read(own, earlier[-1]) if earlier else None) or NOTHING
        measured = self._measured(folder, number)
        self._refuse(measured)
        made = next_decision(self.shedding, last, measured, self.delays)
        write_once(own / str(number), json.dumps(plain(made)).encode())
        for each in earlier[:-KEPT]:
            (own / str(each)).unlink(missing_ok=True)
        return _read(own, number) or made

    def _refuse(self, found: Measured) -> None:
        rules = self.shedding.rules
        for name, used, limit in (
            ("wjoin.memory", found.state, rules.memory),
            ("wjoin.disk", found.disk, rules.disk),
        ):
            if limit is not None and used > limit and self.shedding.refuses:
                raise over_limit(name, used, limit)

    def _measured(self, folder: Path, number: int) -> Measured:
        manifests: list[Manifest] = []
        seen: dict[int, int] = {}
        seen_before: dict[int, int] = {}
        ended: list[float | None] = []
        disk = 0
        for stage, workers in enumerate(self.workers):
            for place in range(workers):
                own = worker_folder(stage_folder(folder, stage), place)
                before = [each for each in numbers(own) if each < number][-KEPT:]
                told = [written_manifest(read_manifest(own, each).body) for each in before]
                manifests += told[-1:]
                if place == 0 and told:
                    # All workers of a stage have been told the same.
                    seen |= told[-1].seen
                    seen_before |= told[0].seen if len(told) == KEPT else {}
                ended.append(_changed(own / f"{number - 1}.manifest"))
                disk += _bytes(own) if self.shedding.rules.disk is not None else 0
        state = sum(each.size for manifest in manifests for each in manifest.all_slices)
        began, known = _changed(folder / SHED / str(number - 1)), [each for each in ended if each is not None]
        busy = max(known) - began if known and began is not None else None
        return Measured(state, disk, seen, seen_before, busy, time.time())

    def keeps(
        self, stream: int, decision: Decision, rows: pa.RecordBatch, code: str | None
    ) -> BoolArray | None:
        """Return which rows of a stream are kept, None where all are; ``code``: the column with their key."""
        own = next((each for each in self.shedding.streams if each.number == stream), None)
        ratio = decision.ratios.get(stream, 0.0)
        if own is None or ratio <= 0:
            return None
        keyed = own.stage is not None and code is not None
        found = int64_view(rows.column(code)) if keyed else _row_codes(rows)
        return kept_codes(found, ratio, _salt(own))


def over_limit(name: str, used: int, limit: int) -> WJoinError:
    """Return the error for a state above its limit, which a setting ``name`` has."""
    return WJoinError(
        "WJ725",
        f"the state of a join has {size(used)}, and {name} allows {size(limit)}",
        help=f"raise {name} and start the query again, which resumes; or SET wjoin.shedding = linear",
    )


def kept_codes(codes: Int64Array, ratio: float, salt: int) -> BoolArray:
    """Return which of some numbers (int64) are kept if a share ``ratio`` is shed.

    What is kept at a ratio is kept at every lesser one as well.
    """
    kept: BoolArray = _mixed(codes, salt) >= np.uint64(min(round(ratio * (1 << 53)), 1 << 53))
    return kept


def _salt(own: StreamShedding) -> int:
    """Return a number by which keys of different stages, and rows of different streams, are judged apart."""
    return 2 * own.number + 1 if own.stage is None else 2 * own.stage


def _mixed(codes: Int64Array, salt: int) -> npt.NDArray[np.uint64]:
    """Return 53 bits that follow from numbers, and have nothing to do with those that choose a worker."""
    # The last steps of SplitMix64: every bit of a number changes half of those of its hash.
    mixed = codes.view(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: npt.NDArray[np.uint64] = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)
    return hashed


def _row_codes(rows: pa.RecordBatch) -> Int64Array:
    """Return numbers that follow from what the rows are: equal rows have the same, whatever their order.

    Values in lists, structs and maps do not count.
    """
    found = np.zeros(rows.num_rows, np.uint64)
    for place, (field, column) in enumerate(zip(rows.schema, rows.columns, strict=True)):
        if pa.types.is_nested(field.type):
            continue
        hashed = pd.util.hash_array(column.to_numpy(zero_copy_only=False))
        found = _mixed((found ^ hashed).view(np.int64), place)
    codes: Int64Array = found.view(np.int64)
    return codes


def _known(folder: Path) -> list[int]:
    try:
        names = [each.name for each in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(int(each) for each in names if each.isdecimal())


def _read(folder: Path, number: int) -> Decision | None:
    """Return what was decided of a micro-batch, None where nothing was. Raises WJoinError WJ719."""
    path = folder / str(number)
    try:
        return typed(Decision, json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise damaged(path, f"cannot be read: {type(error).__name__}") from error


def _changed(path: Path) -> float | None:
    """Return when a file was written, in seconds since 1970; None where it is not there."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None


def _bytes(folder: Path) -> int:
    """Return the bytes of the files of a worker's state, whether they still count or not."""
    found = 0
    with os.scandir(folder) as files:
        for each in files:
            try:
                found += each.stat().st_size
            except FileNotFoundError:
                continue  # Another task has removed it.
    return found
