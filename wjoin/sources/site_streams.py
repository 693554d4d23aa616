"""Streams at sites: declared, described, and read as a plan wants them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from wjoin.executor.sites.likely_offsets import Likely, LikelySide
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.site_source import PARTNER, SiteSource, site_addresses
from wjoin.executor.spark.stages import HeldStream
from wjoin.executor.spark.warm import served
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import SITE_FORMAT, CreateStream
from wjoin.grammar.tokens import names_in
from wjoin.planner.catalog import Estimate, Origin, SiteFacts
from wjoin.planner.cost.measurement import KeyCount, distinct_values
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.cost.stream_statistics import type_width
from wjoin.planner.figures import figure, seconds, size
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.plan.physical import PhysicalPlan, Shipping, StreamScan, TimeKind
from wjoin.sites.block_size import block_bytes
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import ROW, MeasuredLink, SiteAddress, StreamFacts
from wjoin.sources.computed import with_computed
from wjoin.sources.format_options import own_option, without
from wjoin.sources.site_links import link_to
from wjoin.sources.token_folders import token_folders
from wjoin.spark.engine import at_work

DECLARING_SECONDS = 10.0
"""How long a site may be out of reach when a stream is declared, or a statement planned."""

SAMPLE = 32
"""Of so many buckets of hashes one is told row by row: what becomes of it tells what a choice misses."""

_OURS = ("latency", "bandwidth")


@dataclass(frozen=True)
class StreamAtSites:
    """A declared stream at sites: where it is, the options it is read with, and the slowest of its links.

    ``columns`` are the names of the columns at the site.
    """

    stream: SiteStream
    options: Mapping[str, str] = field(repr=False)
    latency: Estimate
    bandwidth: Estimate
    columns: tuple[str, ...]


def is_at_site(statement: CreateStream) -> bool:
    """Return whether a stream is declared at sites, in whatever words."""
    return statement.provider.name.lower() == SITE_FORMAT


def site_options(statement: CreateStream) -> dict[str, str]:
    """Return the options by which Spark reads a stream at sites. Raises WJoinError WJ603."""
    options = dict(statement.options)
    if statement.site is None:
        return options
    for name in ("site", "stream"):
        if own_option(options, name) is not None:
            message = f"AT SITE already gives the {name}"
            raise WJoinError("WJ603", message, span=statement.site.span, help=f"leave the option {name} out")
    named = statement.site.stream or statement.name
    return {**options, "site": ",".join(statement.site.addresses), "stream": named.name}


def at_sites(spark: SparkSession, statement: CreateStream) -> StreamAtSites:
    """Return a stream as its sites describe it. Raises WJoinError WJ603 for options, WJ604 for the sites.

    WJ608 and WJ902 are for the files of tokens and certificates.
    """
    options = site_options(statement)
    lower = {name.lower(): value for name, value in options.items()}
    for needed in ("site", "stream"):
        if needed not in lower:
            message = f"the format {SITE_FORMAT} needs the option {needed}"
            raise WJoinError("WJ603", message, span=statement.provider.span, help="write AT SITE 'grpc://…'")
    folders = token_folders(spark)
    # Spark registers no format that the session has which is at work, whichever it is asked by.
    at_work(spark)
    with served(spark):
        spark.dataSource.register(SiteSource.limited(folders))
    try:
        addresses = site_addresses(lower, folders)
        described = [described_at(address, lower["stream"]) for address in addresses]
        measured = () if all(name in lower for name in _OURS) else addresses
        links = [link_to(_soon(each)) for each in measured]
    except (SiteError, OSError, ValueError) as error:
        raise _refused(error, statement) from error
    _check_alike(described, addresses, statement)
    return StreamAtSites(
        SiteStream(addresses, lower["stream"], tuple(each.lineage for each in described)),
        without(options, *_OURS),
        _estimate(lower.get("latency"), max((each.latency for each in links), default=0.0), statement),
        _estimate(
            lower.get("bandwidth"), min((each.bytes_per_second for each in links), default=0.0), statement
        ),
        tuple(described[0].schema.names),
    )


def described_at(address: SiteAddress, stream: str) -> StreamFacts:
    """Return what a site says of a stream now. Raises SiteError."""
    from wjoin.sites.client import SiteClient

    with SiteClient(_soon(address)) as client:
        return client.describe(stream)


def _soon(address: SiteAddress) -> SiteAddress:
    """Return an address at which nobody is waited for longer than a statement may take."""
    return replace(address, patience=min(address.patience, DECLARING_SECONDS))


def _estimate(given: str | None, measured: float, statement: CreateStream) -> Estimate:
    if given is None:
        return Estimate(measured, Origin.MEASURED)
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if value < 0:
        raise WJoinError(
            "WJ603",
            f"an invalid latency or bandwidth: {given}",
            span=statement.provider.span,
            help="give the latency in seconds, and the bandwidth in bytes a second",
        )
    return Estimate(value, Origin.GIVEN)


def _check_alike(
    described: Sequence[StreamFacts], addresses: Sequence[SiteAddress], statement: CreateStream
) -> None:
    """Refuse a stream whose sites have other columns."""
    first = described[0].schema
    for each, address in zip(described[1:], addresses[1:], strict=True):
        if not each.schema.equals(first):
            raise WJoinError(
                "WJ604",
                f"{address.url} and {addresses[0].url} have different columns: {_columns(each.schema)}, "
                f"not {_columns(first)}",
                span=statement.provider.span,
                help="declare them as separate streams",
            )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _refused(error: Exception, statement: CreateStream) -> WJoinError:
    if isinstance(error, SiteError):
        message = f"the stream {statement.name.name} cannot be opened: {error.message} ({error.site})"
        return WJoinError("WJ604", message, span=statement.provider.span, help=error.help)
    message = f"the stream {statement.name.name} cannot be opened: {error}"
    return WJoinError("WJ604", message, span=statement.provider.span, help="check the options")


def site_facts(
    site: StreamAtSites, statement: CreateStream, types: Mapping[str, str]
) -> tuple[SiteFacts, dict[str, Estimate]]:
    """Return what the planner must know of a stream at sites, and the statistics that they tell now.

    ``types``: those of its columns, by name. A site without rows tells nothing. Raises WJoinError WJ604 where
    a site cannot be reached.
    """
    try:
        described = [described_at(each, site.stream.stream) for each in site.stream.addresses]
    except SiteError as error:
        raise _refused(error, statement) from error
    computed = {each.name.name.lower() for each in statement.computed}
    plain = {name.lower(): float(type_width(kind)) for name, kind in types.items()}
    told = [each for each in described if each.next > each.first and each.rate > 0]
    known: dict[str, float] = {}
    if told:
        total = sum(each.rate for each in told)
        shares = [each.rate / total for each in told]
        plain |= _weighted([each.packed or each.widths for each in told], shares, site.columns)
        width = sum(_weighted([each.widths for each in told], shares, site.columns).values())
        known = {"rate": total, "width": width}
    for each in told:
        rows = each.next - each.first
        for name, values in each.distinct.items():
            # Those of the rows that are there, of which more are to come.
            counted = KeyCount(rows, max(1, min(rows, round(values))), 1)
            key = f"distinct.{name.lower()}"
            known[key] = max(known.get(key, 0.0), distinct_values([counted]))
    statistics = {name: Estimate(value, Origin.MEASURED) for name, value in known.items() if value > 0}
    own = {name.lower() for name in site.columns} - computed
    travelling = {name: width for name, width in plain.items() if name in own}
    as_there = {
        field.name.lower(): field.dataType.simpleString() for field in from_arrow_schema(described[0].schema)
    }
    declared = {name.lower(): kind.lower() for name, kind in types.items()}
    same = frozenset(name for name in own if declared.get(name) == as_there[name])
    times = {each.time.lower() for each in described}
    time = times.pop() if len(times) == 1 else ""
    return SiteFacts(travelling, site.latency, site.bandwidth, time, same), statistics


def slow_link(stream: str, shipped: Shipments, span: Span) -> WJoinWarning:
    """Return the warning of a stream whose rows its site's link cannot bring as fast as they come."""
    way = shipped.ways[0]
    rows = f"{size(way.size)} in {counted(figure(way.messages), 'message')}"
    message = (
        f"the link of {stream}'s site is too slow, so the query falls behind: the rows of one second "
        f"({rows}) take {seconds(way.seconds)} to send"
    )
    return WJoinWarning("WJ815", message, span=span)


def kept_whole(stream: str, event_time: str, site: SiteFacts, span: Span) -> WJoinWarning:
    """Return the warning of a stream whose event time is not the one by which its sites keep rows."""
    own = f"by {site.time}" if site.time else "by different columns"
    help = f"serve it once more with time = '{event_time}', or give it max_bytes"
    if event_time.lower() == site.time:
        own, help = f"by {event_time} as it is there", f"read {event_time} with the type that it has there"
    elif event_time.lower() not in site.plain:
        help = "compute the event time before the site takes rows in, or give the stream max_bytes"
    message = (
        f"the event time of {stream} is {event_time}, and its site keeps rows {own}: "
        "for a query it keeps all rows, as long as that runs"
    )
    return WJoinWarning("WJ811", message, span=span, help=help)


def _weighted(
    told: Sequence[Mapping[str, float]], shares: Sequence[float], columns: Sequence[str]
) -> dict[str, float]:
    """Return bytes by column, in lower case, of the rows of all sites: ``shares`` are theirs."""
    return {
        name.lower(): sum(each.get(name, 0.0) * share for each, share in zip(told, shares, strict=True))
        for name in columns
    }


def likely_options(
    plan: PhysicalPlan, stream: int, sites: Mapping[int, StreamAtSites], folder: Path
) -> dict[str, str]:
    """Return the options by which of a stream only those rows come that probably match.

    ``sites``: where both streams of the join are; ``folder``: where their readers tell what they choose.
    """
    one, other = sorted(sites)
    sides = []
    for number in (one, other):
        site, scan = sites[number], plan.streams[number].site
        if scan is None or scan.likely is None:
            raise ValueError("a join that brings all rows")
        names = {name.lower(): name for name in site.columns}
        column = names[scan.likely.column]
        sides.append(LikelySide((), site.stream.stream, column, scan.likely.delay, scan.likely.width))
    ahead, back = plan.windows.between(one, other), plan.windows.between(other, one)
    scan = plan.streams[stream].site
    if ahead is None or back is None or scan is None or scan.likely is None:
        raise ValueError("a join without a window")
    ceiling = greatest_time(plan.time_kind)
    likely = Likely(
        (sides[0], sides[1]),
        ahead,
        back,
        ceiling,
        scan.likely.error,
        scan.likely.bits,
        SAMPLE,
        str(folder),
        scan.likely.messages,
    )
    partner = sites[other if stream == one else one]
    return {
        "likely": likely.to_json(),
        "likelyStream": str(int(stream == other)),
        **{f"{PARTNER}{name}": value for name, value in partner.options.items()},
    }


def read_as(
    spark: SparkSession,
    site: StreamAtSites,
    statement: CreateStream,
    scan: StreamScan,
    told: Path | None,
    more: Mapping[str, str],
) -> DataFrame:
    """Return a stream as a plan reads it: the columns that shall travel, and the number of each row.

    ``told``: the file that says another way to travel while a query runs, None where there is none;
    ``more``: other options of the source.
    """
    if scan.site is None:
        raise ValueError("a plan that does not read the stream from its site")
    partial = scan.site.shipping is Shipping.PARTIAL
    early = _of_source(scan.site.early, site, statement)
    late = [str(scan.columns[number].output).lower() for number in scan.site.late]
    options = {
        **site.options,
        "columns": json.dumps([name for name in site.columns if name.lower() in {*early, *late}]),
        "early": json.dumps([name for name in site.columns if name.lower() in early]),
        "partial": str(partial).lower(),
        "blockBytes": str(block_bytes(MeasuredLink(site.latency.value, site.bandwidth.value))),
        **({} if told is None else {"told": str(told)}),
        **more,
    }
    return opened(spark, statement, options, numbered=True)


def held_at(spark: SparkSession, site: StreamAtSites, kind: TimeKind) -> HeldStream:
    """Return a stream whose rows stay at its sites; ``kind``: that of its event time."""
    reader = spark.readStream.format(SITE_FORMAT).options(**site.options, extents=str(greatest_time(kind)))
    return HeldStream(reader.load(), site.stream, site.columns)


def opened(
    spark: SparkSession, statement: CreateStream, options: Mapping[str, str], *, numbered: bool = False
) -> DataFrame:
    """Return the rows of a stream at sites; ``numbered``: with the number of each."""
    reader = spark.readStream.format(SITE_FORMAT).options(**options)
    if statement.columns is not None:
        number = f", {ROW} BIGINT" if numbered else ""
        reader = reader.schema(statement.columns + number)
    elif numbered:
        reader = reader.option("rowNumbers", "true")
    return with_computed(reader.load(), statement)


def _of_source(names: Sequence[str], site: StreamAtSites, statement: CreateStream) -> set[str]:
    """Return the columns of the site, in lower case, that columns of the stream are or are computed of."""
    computed = {each.name.name.lower(): each.expression for each in statement.computed}
    own = {name.lower() for name in site.columns}
    found: set[str] = set()
    for name in names:
        if name.lower() not in computed:
            found.add(name.lower())
            continue
        found |= names_in(computed[name.lower()]) & own
    return found
