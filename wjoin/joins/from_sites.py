"""The streams of a W-join that are at sites: read as its plan wants them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.stages import HeldStream
from wjoin.joins.from_items import FromSource
from wjoin.planner.plan.physical import PhysicalPlan, Shipping
from wjoin.planner.planning import PlannedSelect
from wjoin.sources.site_streams import held_at, likely_options, read_as
from wjoin.sources.site_ways import likely_folder


def read_from_sites(
    spark: SparkSession,
    planned: PlannedSelect,
    sources: Sequence[FromSource],
    ways: Mapping[int, Path],
    inputs: list[DataFrame],
    place: str,
) -> tuple[dict[int, SiteStream], dict[int, HeldStream]]:
    """Have the streams at sites read as a plan wants them, in the place of ``inputs``; return them.

    Those come last that are held at their sites. ``place`` is the number of the join in Spark.
    """
    sites: dict[int, SiteStream] = {}
    held: dict[int, HeldStream] = {}
    likely = _likely_options(planned.physical, sources, place)
    for number, stream in enumerate(planned.physical.streams):
        declared = sources[number].declared
        if stream.site is None or declared is None or not declared.site or not declared.statement:
            continue
        sites[number] = declared.site.stream
        if stream.site.shipping is Shipping.HELD:
            held[number] = held_at(spark, declared.site, planned.physical.time_kind)
        else:
            told = ways.get(number)
            more = likely.get(number, {})
            inputs[number] = read_as(spark, declared.site, declared.statement, stream, told, more)
    return sites, held


def _likely_options(
    plan: PhysicalPlan, sources: Sequence[FromSource], place: str
) -> dict[int, dict[str, str]]:
    """Return the options of streams of which only rows come that probably match, by their numbers."""
    found = {
        number: declared.site
        for number, stream in enumerate(plan.streams)
        if stream.site is not None and stream.site.likely is not None
        if (declared := sources[number].declared) is not None and declared.site is not None
    }
    if not found:
        return {}
    folder = likely_folder(f"{place}-likely")
    return {each: likely_options(plan, each, found, folder) for each in found}
