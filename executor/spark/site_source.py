"""Spark's data source ``wjoin_site``: a stream at one site or several, by the numbers of its rows.

Usable by itself: ``spark.dataSource.register(SiteSource)``, then
``spark.readStream.format("wjoin_site").option("site", "grpc://host:port").option("stream", "name").load()``.
Offsets are exact and can be read again: the lineage at each site, and the number of the next row.
"""

import inspect
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.likely import Chooser
from wjoin.executor.sites.likely_offsets import Likely, LikelyRows, Reached
from wjoin.executor.sites.site_errors import as_declared, told
from wjoin.executor.sites.stream import numbered
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import SITE_FORMAT
from wjoin.parts.kernels.runs import int64_view
from wjoin.planner.plan.physical import Shipping
from wjoin.sites.protocol import ROW, SiteAddress, StreamFacts
from wjoin.sites.secret_files import checked_token, read_certificate, read_token
from wjoin.sites.value_filter import ValueFilter

if TYPE_CHECKING:
    from wjoin.sites.client import SiteClient

PARTITION_ROWS = 100_000
"""Rows that one task reads, unless there would be more than ``MOST_PARTITIONS``."""

MOST_PARTITIONS = 32

PARTNER = "partner."
"""What stands before the options of the other stream of a join of which only likely rows come."""

_COUNTED = ("rows", "size", "ahead", "furthest", "earliest", "latest")

EXTENTS = StructType([StructField(name, LongType()) for name in ("site", "start", "stop", *_COUNTED)])
"""What is read of rows that are held at their site: whose they are, and what ``SiteClient.extent`` counts."""

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:
    # Spark before 4.2 has none of them, and asks for all there is; the types are those of the newest one.
    ReadAllAvailable = ReadMaxRows = None  # type: ignore[assignment,misc]  # is not called then
    SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]  # nothing is asked of it then

ONE_MICRO_BATCH = ReadAllAvailable is None
"""Whether Spark reads no more than one micro-batch of a stream in a run to the end of its streams."""


@dataclass(frozen=True)
class SiteOptions:
    """The options of a stream at sites.

    ``columns``: those that travel, None for all; others are NULL. ``early``: those of a partial tuple, None
    where rows are whole always; ``partial``: whether rows come so at first, and ``told`` the file that says
    another way (full or partial) once it is there. ``most_rows``: rows of a micro-batch, None for all.
    ``block_bytes``: about the size of a block. ``extents``: the greatest event time that counts, where no row
    is read, only how many there are and of which times. ``likely``: the join of which only rows that probably
    match come, and which of its streams this is.
    """

    addresses: tuple[SiteAddress, ...]
    stream: str
    columns: tuple[str, ...] | None
    early: tuple[str, ...] | None
    partial: bool
    told: str | None
    most_rows: int | None
    latest: bool
    extents: int | None
    block_bytes: int | None
    likely: tuple[Likely, int] | None = None

    @property
    def comes_partially(self) -> bool:
        """Whether rows come as partial tuples now; asked by the driver for each micro-batch."""
        told = None if self.told is None else Path(self.told)
        if told is not None and told.is_file():
            return told.read_text(encoding="utf-8") == Shipping.PARTIAL.value
        return self.partial

    @classmethod
    def of(cls, options: Mapping[str, str], folders: Sequence[Path] | None = None) -> "SiteOptions":
        """Read the options as Spark has them: texts, names in any case; ``folders`` as ``site_addresses``.

        Raises ValueError for wrong ones, and WJoinError WJ608 and WJ902 for their files.
        """
        given = {name.lower(): value for name, value in options.items()}
        if "site" not in given or "stream" not in given:
            raise ValueError(f"the format {SITE_FORMAT} needs the options site and stream")
        columns, early = given.get("columns"), given.get("early")
        most = given.get("maxrowspertrigger")
        return cls(
            addresses=site_addresses(given, folders),
            stream=given["stream"],
            columns=None if columns is None else tuple(json.loads(columns)),
            early=None if early is None else tuple(json.loads(early)),
            partial=given.get("partial", "false").lower() == "true",
            told=given.get("told"),
            most_rows=None if most is None else int(most),
            latest=given.get("startingoffsets", "earliest").lower() == "latest",
            extents=int(given["extents"]) if "extents" in given else None,
            block_bytes=int(given["blockbytes"]) if "blockbytes" in given else None,
            likely=_likely(given, folders) if "likely" in given else None,
        )


def _likely(given: Mapping[str, str], folders: Sequence[Path] | None) -> tuple[Likely, int]:
    """Return the join of which only rows that probably match come, and which of its streams is read."""
    partner = {name.removeprefix(PARTNER): value for name, value in given.items() if name.startswith(PARTNER)}
    own, other = (site_addresses(each, folders) for each in (given, partner))
    number = int(given["likelystream"])
    return Likely.of_json(given["likely"], (other, own) if number else (own, other)), number


def site_addresses(given: Mapping[str, str], folders: Sequence[Path] | None) -> tuple[SiteAddress, ...]:
    """Return the addresses of the option ``site``, one or several with commas; options in lower case.

    Files of tokens and certificates are in one of ``folders``, None for any. Raises WJoinError WJ608 where
    one cannot be read, WJ902 for what is no token or certificate, and ValueError for other options.
    """
    token, certificate = given.get("token"), given.get("certificate")
    if "tokenfile" in given:
        token = read_token(Path(given["tokenfile"]), folders)
    elif token is not None:
        checked_token(token, "the option token")
    pem = None if certificate is None else read_certificate(Path(certificate), folders)
    patience, timeout = (
        float(given.get(name, usual)) for name, usual in (("patience", 300), ("timeout", 60))
    )
    return tuple(SiteAddress(url.strip(), token, pem, patience, timeout) for url in given["site"].split(","))


@dataclass
class SiteRows(InputPartition):
    """Rows of one site, from ``start`` to before ``stop``, for one task; ``partial``: as partial tuples."""

    options: SiteOptions
    site: int
    lineage: str
    start: int
    stop: int
    partial: bool


@dataclass
class LikelyPart(InputPartition):
    """Rows of one site that probably match, for one task."""

    options: SiteOptions
    rows: LikelyRows
    column: str
    high: int


class SiteSource(DataSource):
    """The data source ``wjoin_site``."""

    folders: Sequence[Path] | None = None
    """Where the files of tokens and certificates are that its options name, None for anywhere."""

    @classmethod
    def limited(cls, folders: Sequence[Path] | None) -> "type[SiteSource]":
        """Return the data source for those who may name files in some folders only."""
        return cls if folders is None else type("LimitedSiteSource", (cls,), {"folders": folders})

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return SITE_FORMAT

    def schema(self) -> StructType:
        """Return the columns that the site has, and the number of the row where it is asked for."""
        options = SiteOptions.of(self.options, self.folders)
        if options.extents is not None:
            return EXTENTS
        found: pa.Schema = client_of(options.addresses[0]).describe(options.stream).schema
        schema: StructType = from_arrow_schema(found)
        numbered_rows = str(self.options.get("rowNumbers", "false")).lower() == "true"
        return schema.add(ROW, LongType()) if numbered_rows else schema

    def reader(self, schema: StructType) -> "SiteReader":
        """Return the reader of what the sites have now."""
        return SiteReader(SiteOptions.of(self.options, self.folders), schema)

    def streamReader(self, schema: StructType) -> "SiteStreamReader":  # noqa: N802 (Spark's name)
        """Return the reader of a stream."""
        return SiteStreamReader(SiteOptions.of(self.options, self.folders), schema)


class _Reading:
    """What both readers have."""

    def __init__(self, options: SiteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._last: dict[str, Any] | None = None
        self._target: dict[str, Any] | None = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        return read_rows(partition, self._schema)

    def _facts(self) -> list[StreamFacts]:
        """Return what each site knows of the stream now."""
        with told():
            return [client_of(each).describe(self._options.stream) for each in self._options.addresses]


class SiteReader(_Reading, DataSourceReader):
    """Reads what the sites have at the time."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return the rows that are kept now, in parts."""
        facts = enumerate(self._facts())
        found = (_parts(self._options, site, each.lineage, each.first, each.next) for site, each in facts)
        return [*itertools.chain.from_iterable(found)]


class SiteStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream by offsets ``{"sites": [{"lineage": …, "next": …}]}``."""

    @cached_property
    def _chooser(self) -> Chooser | None:
        return None if self._options.likely is None else Chooser(*self._options.likely)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Return where a new query begins: at the first row that is kept, or after the last one."""
        latest = self._options.latest
        if self._chooser is not None:
            with told():
                self._last = self._chooser.begin(latest=latest).to_json()
            return self._last
        places = ((each.lineage, each.next if latest else each.first) for each in self._facts())
        self._last = {"sites": [{"lineage": lineage, "next": next} for lineage, next in places]}
        return self._last

    def latestOffset(  # noqa: N802 (Spark's name)
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return how far a micro-batch goes that begins at ``start``.

        Before Spark 4.2, which does not say, it begins where the one before has ended.
        """
        begin = self._last if start is None else start
        end = self._target or self._now(begin)
        most = self._options.most_rows
        if limit is not None and ReadAllAvailable is not None:
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if begin is not None and most is not None:
            end = _limited(begin, end, most)
        if begin is not None and self._chooser is not None:
            end = self._chosen(begin, end)
        self._last = end
        return end

    def _chosen(self, begin: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        """Return the end of a micro-batch with what it brings."""
        if self._chooser is None:
            raise ValueError("a stream of which all rows come")
        reached = Reached.of_json(begin)
        with told():
            after = self._chooser.after(reached, [each["next"] for each in end["sites"]])
        return begin if after is reached else after.to_json()

    def _now(self, begin: dict[str, Any] | None) -> dict[str, Any]:
        """Return where the sites are now, each with the lineage that the query has begun with."""
        if begin is None:
            return {"sites": [{"lineage": each.lineage, "next": each.next} for each in self._facts()]}
        self._check(begin["sites"])
        sites = []
        for address, each in zip(self._options.addresses, begin["sites"], strict=True):
            with told():
                reached = client_of(address).next(self._options.stream, each["lineage"])
            sites.append({"lineage": each["lineage"], "next": max(reached, each["next"])})
        return {"sites": sites}

    def _check(self, known: Sequence[object]) -> None:
        if len(known) != len(self._options.addresses):
            raise WJoinError(
                "WJ715",
                f"the checkpoint has read {self._options.stream} from {len(known)} sites, now there are "
                f"{len(self._options.addresses)}",
                help="name the same sites in the same order, or take a new checkpoint",
            )

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """Return how many rows a micro-batch may have."""
        most = self._options.most_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Take what is there now as the end."""
        self._target = self._now(None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 (Spark's name)
        """Return where the sites are now."""
        return None if self._last is None else self._now(self._last)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the rows between two offsets, in parts."""
        self._check(start["sites"])
        self._last = end
        if self._chooser is not None:
            likely = self._chooser.likely
            column = likely.sides[self._chooser.own].column
            with told():
                chosen = [*self._chooser.parts(Reached.of_json(start), Reached.of_json(end))]
            return [LikelyPart(self._options, each, column, likely.ceiling) for each in chosen]
        found = []
        for site, (first, last) in enumerate(zip(start["sites"], end["sites"], strict=True)):
            if first["lineage"] != last["lineage"]:
                raise WJoinError(
                    "WJ715",
                    f"the row numbers of {self._options.stream} were restarted at "
                    f"{self._options.addresses[site].url}",
                    help="start with a new checkpoint",
                )
            found += _parts(self._options, site, last["lineage"], first["next"], last["next"])
        return found


def _limited(begin: dict[str, Any], end: dict[str, Any], most: int) -> dict[str, Any]:
    """Return an offset with at most so many rows, of each site the same share of what it has."""
    waiting = [last["next"] - first["next"] for first, last in zip(begin["sites"], end["sites"], strict=True)]
    share = min(1.0, most / max(1, sum(waiting)))
    sites = [
        {"lineage": last["lineage"], "next": first["next"] + math.ceil(rows * share)}
        for first, last, rows in zip(begin["sites"], end["sites"], waiting, strict=True)
    ]
    return {"sites": sites}


def _parts(options: SiteOptions, site: int, lineage: str, start: int, stop: int) -> list[SiteRows]:
    rows = stop - start
    if rows <= 0:
        return []
    count = 1 if options.extents is not None else min(MOST_PARTITIONS, -(-rows // PARTITION_ROWS))
    edges = [start + rows * number // count for number in range(count + 1)]
    partial = options.comes_partially
    return [SiteRows(options, site, lineage, *pair, partial) for pair in itertools.pairwise(edges)]


def read_rows(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part in the columns of a schema; those that do not travel are NULL."""
    if not isinstance(partition, SiteRows | LikelyPart):
        raise TypeError("a part of another source")
    options = partition.options
    if isinstance(partition, SiteRows) and options.extents is not None:
        yield _extent(partition, options.extents)
        return
    wanted = arrow_schema(schema)
    own = [name for name in wanted.names if name != ROW]
    partial = isinstance(partition, SiteRows) and partition.partial
    wished = options.early if partial else options.columns
    travelling = own if wished is None else [name for name in own if name in wished]
    site = partition.site if isinstance(partition, SiteRows) else partition.rows.site
    client = client_of(options.addresses[site], options.block_bytes)
    for batch in _told(_asked(client, partition, travelling)):
        numbers = numbered(site, int64_view(batch.column(ROW)), partial=partial)
        columns = [
            pa.array(numbers)
            if field.name == ROW
            else as_declared(batch.column(field.name), field.type, field.name)
            if field.name in travelling
            else pa.nulls(batch.num_rows, field.type)
            for field in wanted
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _asked(
    client: "SiteClient", partition: SiteRows | LikelyPart, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a part as its site has them."""
    stream = partition.options.stream
    if isinstance(partition, SiteRows):
        return client.rows(stream, partition.lineage, partition.start, partition.stop, columns)
    rows = partition.rows
    return client.reduced(
        stream,
        rows.lineage,
        rows.ranges,
        partition.column,
        columns,
        filter=None,
        keys=ValueFilter.decode(rows.filter),
        high=partition.high,
    )


def _extent(partition: SiteRows, ceiling: int) -> pa.RecordBatch:
    """Return what the rows of a part are as a whole, as one row."""
    options = partition.options
    with told():
        found = client_of(options.addresses[partition.site]).extent(
            options.stream, partition.lineage, partition.start, partition.stop, ceiling=ceiling
        )
    values = (partition.site, partition.start, partition.stop, *(getattr(found, name) for name in _COUNTED))
    named = zip(EXTENTS.names, values, strict=True)
    return pa.RecordBatch.from_pydict({name: pa.array([value], pa.int64()) for name, value in named})


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a schema of Spark's as a source must give it: with times in UTC."""
    # Before Spark 4.2 that is so without asking.
    asked = "timezone" in inspect.signature(to_arrow_schema).parameters
    in_utc: dict[str, Any] = {"timezone": "UTC"} if asked else {}
    found: pa.Schema = to_arrow_schema(schema, **in_utc)
    return found


def _told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what a site sends; raises WJoinError WJ713, WJ714 and WJ715."""
    with told():
        yield from batches
