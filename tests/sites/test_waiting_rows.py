"""What sites are asked to keep for joins whose results wait: a row is there when it is decided."""

from collections.abc import Mapping

from hypothesis import given

from tests.kit.local import LocalWorkers
from tests.properties.test_join_trees import END, SECOND, Case, Step, Term, block, cases, found_in
from wjoin.executor.counts import Counts
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.sources.site_leases import horizon


def floors(plan: PhysicalPlan, seen: Mapping[int, int]) -> list[int | None]:
    """Return from which event time on a site must keep rows of each stream, by what a query has told."""
    marks = {plan.streams[stream].alias: time - plan.streams[stream].delay for stream, time in seen.items()}
    return [horizon(plan, stream, marks) for stream in plan.staged]


def check(case: Case) -> list[list[int | None]]:
    """Return what sites are told after each micro-batch of a case; no later result has a row before that."""
    try:
        plan = case.plan()
    except WJoinError:
        # No row can be inside the windows, or a condition may hold of what is not there.
        return []
    if any(scan.filters or scan.meets for scan in plan.streams):
        return []
    workers, shown = LocalWorkers(plan), [n for n in range(len(case.delays)) if n not in case.hidden]
    times: dict[int, int] = {}
    told: list[list[int | None]] = []
    ends = [[(END + n, END, 90 + n, 9)] for n in range(len(case.delays))]
    for batch in (*case.batches, ends):
        blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
        for result in found_in(plan, shown, workers.run(blocks, Counts())):
            for stream, number in zip(shown, result, strict=True):
                # New rows have not been read, so that a site has them.
                if told and number in times and told[-1][stream] is not None:
                    assert times[number] * SECOND >= (told[-1][stream] or 0), (case.text, result)
        times |= {row[0]: row[1] for rows in batch for row in rows}
        told.append(floors(plan, workers.manifest(-1).seen))
    return told


@given(cases())
def test_a_site_has_each_row_that_is_still_in_a_result(case: Case) -> None:
    check(case)


def test_a_row_is_kept_for_what_an_earlier_join_gives_late() -> None:
    """C waits for rows of A that wait for B themselves."""
    waits = Step(JoinKind.LEFT, [Term(0, 0, 100, False)])
    late = Step(JoinKind.FULL, [Term(0, -5, 5, False)])
    batches = [[[(1, 0, 0, 0)], [(2, 0, 1, 0)], [(3, 0, 2, 0)]], [[(4, 50, 0, 0)], [], [(5, 50, 2, 0)]]]
    told = check(Case([waits, late], [0, 0, 0], batches, complete=False))
    assert told[1] == [-100 * SECOND, 45 * SECOND, -105 * SECOND]
    # Once B has gone on, only what is near is still of use.
    assert told[2] == [(END - 100) * SECOND, (END - 5) * SECOND, (END - 105) * SECOND]


def test_a_row_is_kept_for_one_that_waits_for_another_stream_first() -> None:
    """B waits for A before it looks for C: C's own windows know nothing of that."""
    steps = [
        Step(JoinKind.RIGHT, [Term(0, -12, -12, False)]),
        Step(JoinKind.ASOF, [Term(1, 1, 4, False)], match="NEAREST"),
        Step(JoinKind.FULL, [Term(0, -12, -12, False)]),
    ]
    batches = [
        [[], [(0, 1, 0, 0), (1, 5, 0, 0)], [], []],
        [[], [], [(2, 5, 0, 0)], [(3, 5, 0, 0)]],
        [[(4, 17, 0, 0)], [], [], []],
    ]
    told = check(Case(steps, [0, 0, 0, 0], batches, complete=False))
    # Of A no row has come, so that B waits whatever the others say.
    assert told[1][2] is None
