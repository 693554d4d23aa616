"""The W-joins of a statement as they are planned, and what makes the statement besides them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame

from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.meter import Meter
from wjoin.executor.spark.stages import Counting, HeldStream
from wjoin.executor.state.identity import COMPUTED, Whole
from wjoin.grammar.canonical import canonical
from wjoin.joins.from_items import FromSource
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.planning import Edit, PlannedSelect


@dataclass(frozen=True)
class Joins:
    """The W-joins of a statement as they are planned, innermost first.

    ``plans`` has them by the numbers under which they are compiled, ``meters`` those of a metered
    statement. ``whole`` is what else makes the statement. ``telling`` has by their places those whose late
    rows go to sinks, and are read apart from them.
    """

    planned: tuple[PlannedSelect, ...]
    plans: dict[int, PhysicalPlan]
    meters: tuple[Meter, ...]
    whole: Whole
    telling: "Mapping[int, PlannedJoin]" = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedJoin:
    """A W-join of a statement as it is planned.

    ``inputs`` are the rows of its FROM items as the plan reads them, ``counting`` is what is counted of it,
    ``edits`` cut it out of the text. Of the streams at sites, by their numbers: ``sites``, those of them that
    are ``held`` there, and in ``ways`` the files that tell how others travel.
    """

    planned: PlannedSelect
    sources: tuple[FromSource, ...]
    inputs: tuple[DataFrame, ...]
    counting: Counting
    edits: tuple[Edit, ...]
    sites: Mapping[int, SiteStream]
    held: Mapping[int, HeldStream]
    ways: dict[int, Path]


def named_streams(join: PlannedJoin) -> Iterator[tuple[int, str]]:
    """Yield by their numbers the streams that are read by a name, and not from a site, with that name."""
    for number, source in enumerate(join.sources):
        if source.declared is not None and source.declared.site is None and number not in join.held:
            yield number, canonical(source.query)


def whole_of(
    parts: dict[str, str],
    joins: Sequence[PlannedJoin],
    telling: Collection[PlannedJoin],
    params: Mapping[str, object],
) -> Whole:
    """Return what makes a statement besides its joins: its text, parameters, computed columns.

    ``parts`` are those of its text (``statement_meaning``). Late rows of the joins ``telling`` go to sinks.
    """
    tokens = " ".join(parts.values()).split(" ")
    named = {token[1:] for token in tokens if token.startswith(":")} & params.keys()
    parts["values"] = " ".join(f"{name} = {params[name]}" for name in sorted(named))
    if telling:
        # Spark reads such a stream in one more place, and counts the places.
        plans = ((each.sources, each.planned.physical.telling) for each in telling)
        told = [canonical(sources[each].written) for sources, numbers in plans for each in numbers]
        parts["late rows"] = f"LATE ROWS INTO of {', '.join(told)}"
    computed = {canonical(made) for each in joins for source in each.sources for made in source.computed}
    parts.update((f"{COMPUTED} {number}", each) for number, each in enumerate(sorted(computed)))
    return Whole(parts, tuple(each.planned.written for each in joins))
