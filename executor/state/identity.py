"""What a checkpoint belongs to: the state format, and of each stage its plan and its workers.

Every worker's manifest says it of the state; kept beside the checkpoint it can be compared before
anything runs.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wjoin.executor.routing import worker_count
from wjoin.executor.state.kept_columns import kept_join
from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.plain import plain, typed
from wjoin.grammar.plurals import counted
from wjoin.planner.bind.written import Written, numbered
from wjoin.planner.choose.held_streams import is_held
from wjoin.planner.plan.checks import Comparison, of_kind
from wjoin.planner.plan.physical import CountedWindow, Method, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Gather, Join, Stage
from wjoin.planner.windows.bounds import Clock
from wjoin.planner.windows.lengths import human

STATE_FORMAT = 8
"""The state format that is written and read: raised whenever an older version could not read this one's."""

COMPUTED = "computed"
"""With what the names of those parts of ``Whole.meaning`` begin that are computed columns."""

_PLACE = re.compile(r"\$(\d+)\.(\d+)")
"""What stands for an alias in ``Whole.meaning``: the number of the join, and that of the stream in it."""

_JOINED = re.compile(r"\b__wjoin_input_\d+\b")
"""What stands for the rows of a join in ``Whole.meaning``."""


def stage_identity(plan: PhysicalPlan, stage: Stage) -> dict[str, Any]:
    """Return what must stay the same of a stage and its plan for the life of a checkpoint, as plain data.

    It is the same for all spellings of a statement. Written by hand, for it outlives the classes of plans:
    what is said here of a statement may change only together with STATE_FORMAT. Bounds, kernels and orders
    are not in it, nor is what follows from them: they may change under a checkpoint, whose state holds at
    least what EXACT needs.
    """
    where = stage.placement
    own = numbered([scan.alias for scan in plan.streams])

    def text(expression: str) -> str:
        return canonical(expression, own)

    return {
        "time": plan.time_kind.value,
        "streams": [
            {
                "streaming": scan.streaming,
                "event_time": scan.event_time.lower(),
                "delay": scan.delay,
                "filters": sorted(map(text, scan.filters)),
                "columns": [
                    [text(each.expression), each.type, None if each.output is None else each.output.lower()]
                    for each in scan.columns
                ],
                "codes": [
                    [[*map(text, each.expressions)], list(each.types), each.exact, list(each.verify)]
                    for each in scan.codes
                ],
            }
            for scan in plan.streams
        ],
        "windows": [list(row) for row in plan.windows.tables[Clock.TIME]],
        "inputs": [
            {
                "members": list(each.members),
                "stage": each.stage,
                "key": None if each.key is None else list(each.key),
                "columns": list(each.columns),
                **_in_hops(stage, place),
                "held": is_held(plan, each),
            }
            for place, each in enumerate(stage.inputs)
        ],
        "route": where.route,
        "slice": where.length,
        "ranged": where.band,
        "bucket": where.bucket,
        "copies": where.copies,
        "master": where.master,
        "comparisons": sorted(each.directed for each in of_kind(stage.checks, Comparison)),
        **_of_outer(plan, stage),
        **_of_counted(plan, text),
        "bands": [
            [list(each.left), list(each.right), each.low, each.high, each.slack, each.checked]
            for each in stage.bands
        ],
    }


def _of_outer(plan: PhysicalPlan, stage: Stage) -> dict[str, Any]:
    """Return what is said of a join that is not an inner one, nothing of an inner join."""
    if plan.kind is JoinKind.INNER or not isinstance(stage, Join):
        return {}
    own = numbered([scan.alias for scan in plan.streams])
    meets = [sorted(canonical(each, own) for each in scan.meets) for scan in plan.streams]
    found: dict[str, Any] = {"kind": stage.kind.value, "meets": meets}
    if stage.windows is not None:
        found["own"] = [list(row) for row in stage.windows.tables[Clock.TIME]]
        gates = sorted(operand for gate in stage.gates for operand in gate.check.columns)
        found |= {"asked": sorted(stage.asked), "gates": gates}
    if stage.alternatives:
        rows = [f" {[*each]}" for each in stage.counted] or [""] * len(stage.alternatives)
        times = (str(each.tables[Clock.TIME]) for each in stage.alternatives)
        found["inside"] = sorted(map(str.__add__, times, rows))
    if stage.nearest is not None:
        found |= {"timed_by": stage.timed_by} if stage.timed_by else {}
        found |= {"nearest": stage.nearest.value, "tied": [list(each) for each in stage.tied]}
    return found


def _of_counted(plan: PhysicalPlan, text: Callable[[str], str]) -> dict[str, Any]:
    """Return what is said of windows of rows, nothing where there are none."""
    if not plan.counted:
        return {}
    counted = [[each.stream, each.rows, text(each.condition), _key(each)] for each in plan.counted]
    windows = [[[*row] for row in each.tables[Clock.TIME]] for each in plan.branches or (plan.windows,)]
    alternatives = zip(windows, map(list, plan.asked), strict=True)
    return {"counted": counted, "alternatives": sorted(map(list, alternatives), key=str)}


def _key(window: CountedWindow) -> int | list[int] | None:
    return window.keys[0] if len(window.keys) == 1 else list(window.keys) or None


def _in_hops(stage: Stage, place: int) -> dict[str, Any]:
    """Return what is said of an input of a hop, or of what gathers its pairs; it is None of a join."""
    each, hops = stage.inputs[place], not isinstance(stage, Join)
    return {
        "origin": each.newest[0] if hops and each.stage is not None else None,
        "meets": list(itertools.chain(*stage.chains(place))) if hops else None,
        "gathered": isinstance(stage, Gather),
    }


def fingerprint(plan: PhysicalPlan, stage: Stage) -> str:
    """Return the identity of a stage as one word: that of the plan that has begun its state."""
    if plan.begun is not None:
        return fingerprint(plan.begun, plan.begun.stages[plan.stages.index(stage)])
    text = json.dumps(stage_identity(plan, stage), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Whole:
    """What a statement is besides the stages of its joins.

    ``meaning`` has by words for it what each part of it means whatever its spelling, and ``written`` how each
    join was written.
    """

    meaning: Mapping[str, str] = field(default_factory=dict)
    written: tuple[Written, ...] = ()


def identity(plans: Sequence[PhysicalPlan], partitions: int, whole: Whole) -> dict[str, Any]:
    """Return the identity of a statement with these W-joins as plain data."""
    return {
        "state": STATE_FORMAT,
        "meaning": dict(whole.meaning),
        "written": plain(whole.written),
        "joins": [
            {
                "method": plan.method.value,
                "stages": [
                    {"plan": fingerprint(plan, stage), "workers": worker_count(stage, partitions)}
                    for stage in plan.stages
                ],
                "aliases": [scan.alias for scan in plan.streams],
                "words": list(_words(plan)),
                "kept": plain(kept_join(plan)) if plan.method is Method.MULTIWAY else None,
            }
            for plan in plans
        ],
    }


def checked(body: Any) -> dict[str, Any]:
    """Return the identity that was kept beside a checkpoint; of another state format its number alone.

    Raises ValueError where it is none.
    """
    try:
        found = dict(body)
        if found["state"] != STATE_FORMAT:
            return {"state": found["state"]}
        _ = _plans(found), dict(found["meaning"])
        _ = [(list(each["words"]), [*map(re.escape, each["aliases"])]) for each in found["joins"]]
        if len([typed(Written, each) for each in found["written"]]) != len(found["joins"]):
            raise ValueError("as many joins are not written as there are")
    except (LookupError, TypeError) as error:
        raise ValueError(f"it lacks something: {error}") from error
    return found


CHECKPOINT = "the checkpoint"
"""How an error speaks of a checkpoint, unless whoever asks knows a name for it."""


def refuse_format(found: object, checkpoint: str = CHECKPOINT) -> None:
    """Raise WJoinError WJ701 for a state format that this version does not read."""
    if found != STATE_FORMAT:
        raise WJoinError(
            "WJ701", f"{checkpoint} has state format {found}; this version of wjoin reads {STATE_FORMAT}"
        )


def refuse_workers(found: int, own: int, checkpoint: str = CHECKPOINT) -> None:
    """Raise WJoinError WJ703 for another number of workers."""
    if found != own:
        raise WJoinError(
            "WJ703",
            f"{checkpoint} was written with {counted(found, 'worker')}; this session has {own}",
            help=f"set spark.sql.shuffle.partitions to {found} before the query starts and keep PLAN as it "
            "was; or rewrite the checkpoint of an exact join for another number: wjoin checkpoint "
            "repartition",
        )


def refuse_other(kept: Mapping[str, Any], own: Mapping[str, Any], checkpoint: str = CHECKPOINT) -> None:
    """Compare an identity kept beside a checkpoint with a statement's own.

    ``checkpoint``: in what words errors speak of it. Raises WJoinError WJ701, WJ702 (with what differs, where
    words tell it) and WJ703.
    """
    refuse_format(kept["state"], checkpoint)
    if _plans(kept) != _plans(own):
        difference = _difference(kept, own)
        if kept["meaning"] == own["meaning"] and (not difference or ": it had «stage " in difference):
            message = f"{checkpoint} has the state of this statement in other stages{difference}"
            help = "use the version of wjoin that began it, or start from a new checkpoint folder"
            raise WJoinError("WJ702", message, help=help)
        message = f"{checkpoint} was written by another statement or another plan of it"
        raise WJoinError("WJ702", message + difference)
    _refuse_meaning(kept, own, checkpoint)
    for before, now in zip(kept["joins"], own["joins"], strict=True):
        if before["method"] == Method.MULTIWAY.value:
            for old, new in zip(before["stages"], now["stages"], strict=True):
                refuse_workers(old["workers"], new["workers"], checkpoint)


def _parted(was: str, found: str) -> tuple[str, str]:
    """Return the words in which two texts differ, without those that they begin and end with."""
    old, new = was.split(), found.split()
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    return _shown(old[start : len(old) - end]), _shown(new[start : len(new) - end])


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many words two texts begin with that are the same."""
    pairs = zip(first, second, strict=False)
    return next((n for n, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(first), len(second)))


def _shown(words: Sequence[str]) -> str:
    text = _JOINED.sub("…", " ".join(words))
    for spelled, shown in ((" . ", "."), ("( ", "("), (" )", ")"), (" ,", ",")):
        text = text.replace(spelled, shown)
    return f"«{text}»" if words else "nothing"


def _refuse_meaning(kept: Mapping[str, Any], own: Mapping[str, Any], checkpoint: str) -> None:
    """Raise WJoinError WJ702 where a part of a statement means something else."""
    before, now = kept["meaning"], own["meaning"]

    def named(found: re.Match[str]) -> str:
        return str(own["joins"][int(found[1])]["aliases"][int(found[2])])

    for part in dict.fromkeys((*before, *now)):
        was, found = before.get(part, ""), now.get(part, "")
        if was != found:
            # Of a computed column the whole is shown.
            shown = (_shown([was]), _shown([found])) if part.startswith(COMPUTED) else _parted(was, found)
            old, new = (_PLACE.sub(named, each) for each in shown)
            message = f"{checkpoint} was written by another statement: it had {old}, this one has {new}"
            raise WJoinError("WJ702", message)


def _plans(body: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    return [(each["method"], [stage["plan"] for stage in each["stages"]]) for each in body["joins"]]


def _difference(kept: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return the first words that differ, but for spelling."""
    before, now = kept["joins"], own["joins"]
    for old, new in zip(before, now, strict=False):
        for was, found in zip(old["words"], new["words"], strict=False):
            if _spelled(was, old["aliases"]) != _spelled(found, new["aliases"]):
                return f": it had «{was}», this one has «{found}»"
    had = counted(len(before), "window join")
    return "" if len(before) == len(now) else f": it had {had}, this one has {len(now)}"


def _spelled(words: str, aliases: Sequence[str]) -> str:
    """Return words without the aliases and the spelling of a statement."""
    for number, alias in enumerate(aliases):
        words = re.sub(rf"(?<!\w){re.escape(alias)}(?!\w)", f"${number}", words, flags=re.IGNORECASE)
    return canonical(words)


def _words(plan: PhysicalPlan) -> Iterator[str]:
    """Yield what the fingerprints are made of in words, to tell a difference by."""
    yield f"{len(plan.streams)} streams, method {plan.method.value}"
    for scan in plan.streams:
        time = f"event time {scan.event_time}" if scan.dated else "no event time"
        yield f"{scan.alias}: {time}, delay {human(scan.delay, plan.time_kind)}"
        yield f"{scan.alias}: filters {' AND '.join(scan.filters) or 'none'}"
        yield f"{scan.alias}: columns {', '.join(column.expression for column in scan.columns) or 'none'}"
    for i, first in enumerate(plan.streams):
        for j, second in enumerate(plan.streams):
            if i != j:
                bound = plan.windows.between(i, j)
                shown = "any" if bound is None else human(bound, plan.time_kind)
                yield f"window: {second.alias} - {first.alias} <= {shown}"
    for number, stage in enumerate(plan.stages, start=1):
        keys = " x ".join(
            "[" + ", ".join(plan.streams[each.key[0]].codes[each.key[1]].expressions) + "]"
            if each.key
            else "[]"
            for each in stage.inputs
        )
        yield f"stage {number}: {keys}"
