"""EXPLAIN COST: what is known of the streams, and every candidate with its cost."""

from collections.abc import Iterator, Sequence

from wjoin.planner.candidates import Candidate
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.durations import human
from wjoin.planner.explain.bands import band_words
from wjoin.planner.physical import Method, PhysicalPlan
from wjoin.planner.plan import PlannedSelect
from wjoin.planner.statistics import units_per_second

TERMS = ("rows", "searches", "comparisons", "tuples", "state", "results", "micro-batches")
"""The terms of a cost, in the order in which they are shown."""


def statistics_lines(planned: PlannedSelect) -> Iterator[str]:
    """Yield a line for each FROM item and each band: what is known of it, and from where."""
    kind = planned.logical.graph.kind
    per = "a unit" if units_per_second(kind) == 1 else "a second"
    for scan, known in zip(planned.physical.streams, planned.statistics, strict=True):
        rate = Estimate(known.rate.value * units_per_second(kind), known.rate.origin)
        facts = [
            (rate, f"{short(rate.value)} rows {per}"),
            (known.width, f"{short(known.width.value)} bytes a row"),
        ]
        if scan.streaming:
            disorder = human(round(known.disorder.value), kind)
            facts.append((known.disorder, f"{disorder} out of order"))
        if scan.filters or known.selectivity.origin is Origin.MEASURED:
            facts.append((known.selectivity, f"filters keep {known.selectivity.value:.3g}"))
        for code, key in zip(scan.codes, known.keys, strict=True):
            name = ", ".join(code.expressions)
            facts.append((key.distinct, f"{short(key.distinct.value)} values of {name}"))
            facts.append((key.heaviest, f"the heaviest {key.heaviest.value:.3g} of the rows"))
        yield f"{scan.alias}: {_sourced(facts)}"
    for stage in planned.physical.stages:
        for band in stage.bands:
            share = planned.shares[band]
            keeps = f"keeps {share.value:.3g} of the pairs"
            yield f"{band_words(band, planned.physical.streams)}: {_sourced([(share, keeps)])}"


def _sourced(facts: Sequence[tuple[Estimate, str]]) -> str:
    """Return facts with their sources: one for all, or one behind each."""
    origins = {each.origin.value for each, _ in facts}
    if len(origins) == 1:
        return f"{', '.join(text for _, text in facts)} ({origins.pop()})"
    return ", ".join(f"{text} ({each.origin.value})" for each, text in facts)


def choice_line(planned: PlannedSelect) -> str:
    """Return in one line what was chosen from, and what the plan is expected to do."""
    best = planned.candidates[0].estimated.cost
    count = len(planned.candidates)
    of = "the only plan" if count == 1 else f"the best of {count} plans (EXPLAIN COST)"
    per = "unit" if units_per_second(planned.logical.graph.kind) == 1 else "second"
    state = f"; {short(best.state_rows)} rows of state" if planned.physical.streaming else ""
    work = f"{short(best.comparisons)} comparisons and {short(best.results)} results"
    return f"{of}: {work} a {per} of event time{state}"


def cost_text(planned: PlannedSelect) -> str:
    """Return the candidates of a block as a table: their terms in seconds, and why each lost."""
    head = ["plan", "cost", *TERMS, "comparisons", "state rows", ""]
    rows = [head, *(_row(each, planned.physical) for each in planned.candidates)]
    table = aligned([row[:-1] for row in rows])
    lines = (f"{line}  {row[-1]}".rstrip() for line, row in zip(table, rows, strict=True))
    return "\n".join(["Candidates, in seconds of one core a second of event time", *lines])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as indented lines: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]))
    return lines


def plan_words(plan: PhysicalPlan) -> str:
    """Return what tells a candidate from the others, in a few words."""
    if plan.method is Method.NATIVE:
        return "native"
    if not plan.stages:
        return "one relation"
    bounds = plan.stages[0].bounds.value
    names = [stage.kernel.value for stage in plan.stages]
    kernels = names[0] if len(set(names)) == 1 else " ".join(names)
    passes = f" {plan.passes.value}" if plan.branches else ""
    stages = ""
    if len(plan.stages) > 1:
        first = " ".join(plan.streams[member].alias for member in plan.stages[0].members)
        stages = f" in {len(plan.stages)} stages, {first} first"
    return f"{bounds} {kernels}{passes}{stages}"


def _row(each: Candidate, chosen: PhysicalPlan) -> list[str]:
    cost = each.estimated.cost
    terms = [short(cost.terms[name]) if name in cost.terms else "-" for name in TERMS]
    numbers = [short(cost.seconds), *terms, short(cost.comparisons), short(cost.state_rows)]
    return [plan_words(each.plan), *numbers, "chosen" if each.plan is chosen else each.lost]


def short(value: float) -> str:
    """Return a number with three significant digits.

    >>> short(0.012345), short(1234567), short(0), short(12)
    ('0.0123', '1,230,000', '0', '12')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1e9:
        return f"{value:.2e}"
    if abs(value) >= 100:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"
