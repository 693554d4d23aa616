"""EXPLAIN COST: what is known of the streams, and every candidate with its cost."""

from collections.abc import Iterator, Mapping, Sequence

from wjoin.parts.kernels.registry import name_of, words_of
from wjoin.planner.candidates import Candidate, shared_terms
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.durations import human
from wjoin.planner.explain.bands import band_words
from wjoin.planner.figures import figure, seconds, size
from wjoin.planner.physical import Bounds, Method, Passes, PhysicalPlan, Stage
from wjoin.planner.plan import PlannedSelect
from wjoin.planner.statistics import DEFAULT_DISTINCT, StreamStatistics, units_per_second

BOUNDS_WORDS = {
    Bounds.EXACT: "",
    Bounds.LCA: ", each stream's widest window",
    Bounds.GCA: ", the widest window of all",
}

TERMS = ("rows", "searches", "comparisons", "tuples", "state", "results", "micro-batches")
"""The terms of a cost, in the order in which they are shown."""


def statistics_lines(planned: PlannedSelect) -> Iterator[str]:
    """Yield what is known of each FROM item and each band, and from where; first of which nothing is."""
    kind = planned.logical.graph.kind
    per = "a unit" if units_per_second(kind) == 1 else "a second"
    pairs = list(zip(planned.physical.streams, planned.statistics, strict=True))
    unknown = [number for number, (_, known) in enumerate(pairs) if _unknown(known)]
    yield from _unknown_lines(planned, unknown, per)
    for number, (scan, known) in enumerate(pairs):
        if number in unknown:
            continue
        rate = Estimate(known.rate.value * units_per_second(kind), known.rate.origin)
        facts = [
            (rate, f"{figure(rate.value)} rows {per}"),
            (known.width, f"{size(known.width.value)} a row"),
        ]
        if scan.streaming and known.disorder.origin is not Origin.DEFAULT:
            # Its default is the delay, which is shown as such.
            disorder = human(round(known.disorder.value), kind)
            facts.append((known.disorder, f"{disorder} out of order"))
        if scan.filters or known.selectivity.origin is Origin.MEASURED:
            facts.append((known.selectivity, f"filters keep {figure(known.selectivity.value)}"))
        for code, key in zip(scan.codes, known.keys, strict=True):
            name = ", ".join(code.expressions)
            facts.append((key.distinct, f"{figure(key.distinct.value)} values of {name}"))
            facts.append((key.heaviest, f"the heaviest {figure(key.heaviest.value)} of the rows"))
        yield f"{scan.alias}: {_sourced(facts)}"
    for stage in planned.physical.stages:
        for band in stage.bands:
            share = planned.shares[band]
            keeps = f"keeps {figure(share.value)} of the pairs"
            yield f"{band_words(band, planned.physical.streams)}: {_sourced([(share, keeps)])}"
    yield from agreement_lines(planned)


def _unknown(known: StreamStatistics) -> bool:
    """Return whether nothing is known of a stream that its declaration does not tell."""
    keys = [each for key in known.keys for each in (key.distinct, key.heaviest)]
    facts = (known.rate, known.width, known.disorder, known.selectivity, known.duration, *keys)
    return all(each.origin is Origin.DEFAULT for each in facts)


def unknown_names(planned: PlannedSelect) -> list[str]:
    """Return the names of the relations of which nothing is known, each once."""
    scans = zip(planned.physical.streams, planned.logical.relations, planned.statistics, strict=True)
    names = [
        relation if relation.isidentifier() else scan.alias
        for scan, relation, known in scans
        if _unknown(known)
    ]
    return list(dict.fromkeys(names))


def _unknown_lines(planned: PlannedSelect, unknown: Sequence[int], per: str) -> Iterator[str]:
    names = unknown_names(planned)
    if not names:
        return
    yield f"nothing is known of {', '.join(names)}: the plan rests on defaults"
    scans = zip(planned.physical.streams, planned.logical.relations, strict=True)
    declared = [relation for scan, relation in scans if scan.streaming and relation in names]
    if declared:
        yield f"ANALYZE STREAM {declared[0]} or ALTER STREAM {declared[0]} SET STATISTICS (rate = …) tells"
    first = planned.statistics[unknown[0]]
    rate = first.rate.value * units_per_second(planned.logical.graph.kind)
    keys = f", {figure(DEFAULT_DISTINCT)} values of a column, all as frequent" if first.keys else ""
    yield f"defaults: {figure(rate)} rows {per} as wide as their types{keys}"


def agreement_lines(planned: PlannedSelect) -> Iterator[str]:
    """Yield for each stage with keys whether its results were measured, or rest on independence."""
    estimates = planned.candidates[0].estimated.stages
    assumed = []
    for stage, each in zip(planned.physical.stages, estimates, strict=True):
        names = ", ".join(planned.physical.streams[member].alias for member in stage.members)
        if all(member.key is None for member in stage.inputs):
            continue
        if each.agreement is None:
            assumed.append(names)
            continue
        often = f"{figure(each.agreement)} times as often as independent of time"
        yield f"{names}: keys agree {often} (measured)"
    if assumed:
        yield "results: the estimate assumes that keys and times are independent"


def _sourced(facts: Sequence[tuple[Estimate, str]]) -> str:
    """Return facts with their sources: one for all, or one behind each."""
    origins = {each.origin.value for each, _ in facts}
    if len(origins) == 1:
        return f"{', '.join(text for _, text in facts)} ({origins.pop()})"
    return ", ".join(f"{text} ({each.origin.value})" for each, text in facts)


def choice_line(planned: PlannedSelect) -> str:
    """Return in one line what was chosen from, and what the plan is expected to do."""
    best = planned.candidates[0].estimated.cost
    count = sum(each.ranked for each in planned.candidates)
    of = "the only plan" if count == 1 else f"the best of {count} plans (EXPLAIN COST)"
    per = "unit" if units_per_second(planned.logical.graph.kind) == 1 else "second"
    state = f"; {figure(best.state_rows)} rows of state" if planned.physical.streaming else ""
    work = f"{figure(best.comparisons)} comparisons and {figure(best.results)} results"
    return f"{of}: {work} a {per} of event time{state}"


def cost_text(planned: PlannedSelect) -> str:
    """Return the candidates of a block as a table: what each costs beyond what all do, and why it lost."""
    shared = shared_terms(planned.candidates)
    ranked = [each for each in planned.candidates if each.ranked]
    terms = [name for name in TERMS if any(_beyond(each, shared).get(name, 0.0) > 0 for each in ranked)]
    head = ["plan", "beyond that" if shared else "cost", *terms, "pairs compared", "rows of state", ""]
    rows = [head, *(_row(each, planned.physical, shared, terms) for each in ranked)]
    table = aligned([row[:-1] for row in rows])
    lines = [f"{line}  {row[-1]}".rstrip() for line, row in zip(table, rows, strict=True)]
    others = [each for each in planned.candidates if not each.ranked]
    return "\n".join(
        [
            "Candidates, in time of one core a second of event time",
            *([f"  {shared_line(shared)}"] if shared else []),
            *lines,
            *(f"  {plain_words(each.plan)}: {_total(each)} in all; {each.lost}" for each in others),
        ]
    )


def shared_line(shared: Mapping[str, float]) -> str:
    """Return in words what all plans pay alike."""
    parts = ", ".join(
        f"{seconds(value)} for {'reading rows' if name == 'rows' else name}" for name, value in shared.items()
    )
    return f"all plans pay {seconds(sum(shared.values()))}: {parts}"


def _beyond(each: Candidate, shared: Mapping[str, float]) -> dict[str, float]:
    terms = each.estimated.cost.terms
    return {name: max(0.0, value - shared.get(name, 0.0)) for name, value in terms.items()}


def _total(each: Candidate) -> str:
    return seconds(each.estimated.cost.seconds)


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
    names = [name_of(stage.kernels) for stage in plan.stages]
    kernels = names[0] if len(set(names)) == 1 else " ".join(names)
    passes = f" {plan.passes.value}" if plan.branches else ""
    stages = ""
    if len(plan.stages) > 1:
        first = " ".join(plan.streams[member].alias for member in plan.stages[0].members)
        stages = f" in {len(plan.stages)} stages, {first} first"
    return f"{bounds} {kernels}{passes}{stages}"


def plain_words(plan: PhysicalPlan) -> str:
    """Return how a plan finds the partners of a row, then its name in the words of hints."""
    if plan.method is Method.NATIVE:
        return "Spark's own joins of two, one after the other (native)"
    if not plan.stages:
        return "one relation, nothing to join"
    kernels = dict.fromkeys(kernel_words(stage) for stage in plan.stages)
    bounds = BOUNDS_WORDS[plan.stages[0].bounds]
    passes = ", alternatives apart" if plan.branches and plan.passes is Passes.UNION else ""
    return f"{'; '.join(kernels)}{bounds}{passes} ({plan_words(plan)})"


def kernel_words(stage: Stage) -> str:
    """Return how a stage finds the partners of a row.

    Without a key nothing is found by it.
    """
    keyed = any(each.key is not None for each in stage.inputs)
    return words_of(stage.kernels, keyed=keyed)


def _row(
    each: Candidate, chosen: PhysicalPlan, shared: Mapping[str, float], terms: Sequence[str]
) -> list[str]:
    cost, beyond = each.estimated.cost, _beyond(each, shared)
    shown = [seconds(beyond[name]) if beyond.get(name) else "-" for name in terms]
    numbers = [seconds(sum(beyond.values())), *shown, figure(cost.comparisons), figure(cost.state_rows)]
    return [plain_words(each.plan), *numbers, "chosen" if each.plan is chosen else each.lost]
