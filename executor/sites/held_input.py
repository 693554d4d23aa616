"""Rows that are held at their sites: which of them a micro-batch of a worker asks for, and brings.

The reduction of a stream by the join values of the other windows (Semijoin streams, section 4), by worker:
of its new rows those travel whose key is in all other windows, of its older ones those whose key
has come there. In the state is only which numbers of rows are held, and from which event time on they count.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import concatenate, stable
from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.other_keys import OtherKeys
from wjoin.executor.sites.ranges import Announced, HeldRows, announced_after, judged
from wjoin.executor.sites.site_errors import as_declared, told
from wjoin.executor.sites.stream import SiteStream, numbered
from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.state.manifest import Elsewhere, Manifest
from wjoin.parts.kernels.runs import RunShape, SortedRun, int64_view, integers
from wjoin.parts.routes.route import Role
from wjoin.planner.choose.held_streams import FEW_VALUES, key_column, site_column
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.plan.block_columns import code_name
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import StageEdge
from wjoin.sites.held import HeldRange
from wjoin.sites.protocol import ROW
from wjoin.sites.value_filter import ValueFilter
from wjoin.sites.value_sets import kind_of

_MOST_BESIDE = 100_000
"""Values that travel beside a filter with each request at the most."""

_STALE = 4
"""A filter is made anew where it has so many times as many values as the windows have."""


@dataclass(frozen=True)
class HeldInput:
    """Input ``number`` of stage ``stage`` of a plan, whose rows are held at sites; sent to Python workers.

    ``names``: the columns as the sites name them, by their names in lower case; ``types``: Arrow's type of
    each as Spark reads it. ``place``: the name under which a worker remembers what it has pushed.
    """

    plan: PhysicalPlan
    stage: int
    number: int
    site: SiteStream
    names: Mapping[str, str]
    types: Mapping[str, pa.DataType]
    place: str

    @property
    def input(self) -> StageEdge:
        """The input itself."""
        return self.plan.stages[self.stage].inputs[self.number]

    @property
    def stream(self) -> int:
        """The stream whose rows it has."""
        return self.input.members[0]

    def late(self, manifest: Manifest, arrivals: Arrivals) -> int:
        """Return how many of the new rows are late. Raises WJoinError WJ713, WJ714 and WJ715."""
        mark = self._mark(manifest)
        if mark is None:
            return 0
        found = 0
        for each in arrivals.announced.get(self.number, ()):
            if each.earliest < mark:
                with told():
                    extent = client_of(self.site.addresses[each.site]).extent(
                        self.site.stream,
                        self.site.lineages[each.site],
                        each.start,
                        each.stop,
                        ceiling=self._ceiling,
                        mark=mark,
                    )
                found += extent.late
        return found

    def brought(
        self,
        manifest: Manifest,
        arrivals: Arrivals,
        working: Sequence[Sequence[SortedRun]],
        shapes: Sequence[RunShape],
        held: int,
        worker: int,
    ) -> list[SortedRun]:
        """Return the rows of earlier micro-batches that new ones may meet; add the new ones to ``arrivals``.

        ``held``: the bytes of rows that are in memory at once.

        Raises WJoinError WJ713, WJ714 and WJ715.
        """
        number, shape = self.number, shapes[self.number]
        keys = OtherKeys.of(self.plan, self.stage, number, working, arrivals.blocks, manifest.seen)
        runs: list[SortedRun] = []
        waiting: list[pa.RecordBatch] = []
        for block in self.old(self._known(manifest), keys):
            waiting.append(block)
            if sum(batch.nbytes for batch in waiting) > held:
                runs.append(shape.read(arrivals.spool.put(shape.sort(concatenate(waiting)).batch)))
                waiting = []
        if waiting:
            runs.append(shape.sort(concatenate(waiting)))
        for block in self.new(arrivals.announced.get(number, ()), self._mark(manifest), keys, worker):
            arrivals.add(number, Role.BOTH, block, shapes, held)
        return runs

    def after(self, manifest: Manifest, arrivals: Arrivals, settled: int | None) -> Elsewhere:
        """Return what the state knows of the rows after a micro-batch."""
        announced = arrivals.announced.get(self.number, ())
        return announced_after(self._known(manifest), announced, self._mark(manifest), settled)

    def _known(self, manifest: Manifest) -> Elsewhere:
        return manifest.held[self.number] if manifest.held else ()

    def _mark(self, manifest: Manifest) -> int | None:
        """Return the watermark before the micro-batch, by which its rows are late."""
        return watermark(manifest.seen.get(self.stream), self.plan.streams[self.stream].delay)

    def old(self, known: Sequence[HeldRows], keys: OtherKeys) -> Iterator[pa.RecordBatch]:
        """Yield those rows of earlier micro-batches that new rows of other inputs may meet, as blocks."""
        values, (low, high) = keys.new_values, keys.reach_of_new(self.stream)
        yield from self._asked(known, values, low, high, keys, pushed=False, worker=0)

    def new(
        self, announced: Sequence[Announced], mark: int | None, keys: OtherKeys, worker: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield those of the new rows that are in time and may meet rows of all other inputs, as blocks."""
        ranges = [replace(judged(each, mark), low=mark) for each in announced]
        low, high = keys.reach_of_all(self.stream)
        yield from self._asked(ranges, keys.values, low, high, keys, pushed=True, worker=worker)

    def _asked(
        self,
        ranges: Sequence[HeldRows],
        values: pa.Array,
        low: int | None,
        high: int | None,
        keys: OtherKeys,
        *,
        pushed: bool,
        worker: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield blocks of the rows of some ranges whose key is among values, of the times low..high."""
        if not len(values):
            return
        wanted: dict[int, list[HeldRows]] = {}
        # Rows of the far future have been dropped.
        last = self._ceiling if high is None else min(high, self._ceiling)
        for each in ranges:
            least = max((time for time in (each.low, low) if time is not None), default=None)
            if least is None or least <= min(each.latest, last):
                wanted.setdefault(each.site, []).append(replace(each, low=least))
        filters = self._pushed(values, worker) if pushed else (None, self._filter(values))
        with ThreadPoolExecutor(max(1, len(wanted))) as pool:
            asked = [
                (site, pool.submit(self._from_site, site, own, *filters, last))
                for site, own in sorted(wanted.items())
            ]
            for site, answer in asked:
                for batch in answer.result():
                    yield self._block(site, batch, keys)

    def _from_site(
        self,
        site: int,
        ranges: Sequence[HeldRows],
        filter: ValueFilter | None,
        keys: ValueFilter | None,
        high: int,
    ) -> list[pa.RecordBatch]:
        client = client_of(self.site.addresses[site])
        with told():
            return list(
                client.reduced(
                    self.site.stream,
                    self.site.lineages[site],
                    [HeldRange(each.start, each.stop, each.low) for each in ranges],
                    self.names[self._key],
                    [self.names[name] for name in self._columns],
                    filter=filter,
                    keys=keys,
                    high=high,
                )
            )

    @property
    def _ceiling(self) -> int:
        return greatest_time(self.plan.time_kind)

    @property
    def _key(self) -> str:
        return key_column(self.plan, self.input)

    @property
    def _columns(self) -> list[str]:
        """The columns of the relation that the blocks are made of, in lower case."""
        found = (site_column(self.plan, self.stream, name) for name in self.input.columns)
        return list(dict.fromkeys(each for each in (*found, self._key) if each is not None))

    def _block(self, site: int, batch: pa.RecordBatch, keys: OtherKeys) -> pa.RecordBatch:
        """Return rows of a site as a block of the input."""
        read = {name: batch.column(self.names[name]) for name in self._columns}
        values = {
            name: as_declared(column, self.types[name], self.names[name]) for name, column in read.items()
        }
        key = None if self.input.key is None else code_name(*self.input.key)
        columns: dict[str, pa.Array] = {}
        for name in self.input.columns:
            column = site_column(self.plan, self.stream, name)
            if column is not None:
                own = values[column]
                columns[name] = integers(own) if name[0] in "tk" else stable(own)
            elif name == key:
                columns[name] = keys.codes_of(values[self._key])
            else:
                columns[name] = pa.array(numbered(site, int64_view(batch.column(ROW)), partial=False))
        block = pa.RecordBatch.from_pydict(columns)
        if key is not None and block.column(key).null_count:
            # A filter lets a few values through that are in no window.
            return block.filter(block.column(key).is_valid())
        return block

    def _pushed(self, values: pa.Array, worker: int) -> tuple[ValueFilter | None, ValueFilter | None]:
        """Return the filter that a site keeps, and one of the values that have come since it was made."""
        if len(values) <= FEW_VALUES:
            return None, self._filter(values)
        place = (self.place, self.stage, self.number, worker)
        filter, count = _filters.get(place, (None, 0))
        if filter is not None and count <= _STALE * len(values):
            rest = values.filter(pa.array(~filter.has(values)))
            if len(rest) <= max(FEW_VALUES, min(count // 2, _MOST_BESIDE)):
                return filter, self._filter(rest) if len(rest) else None
        filter = self._filter(values)
        _filters[place] = filter, len(values)
        while len(_filters) > _REMEMBERED:
            _filters.pop(next(iter(_filters)))
        return filter, None

    def _filter(self, values: pa.Array) -> ValueFilter:
        """Return the filter of some of the keys of others."""
        return ValueFilter.of(values, kind_of(self.types[self._key]))


_REMEMBERED = 64
_filters: dict[tuple[str, int, int, int], tuple[ValueFilter, int]] = {}
"""What this process has pushed, and how many values each filter had when it was made."""
