"""What sites are asked to keep for joins whose results wait: a row is there when it is decided."""

from collections.abc import Mapping

from hypothesis import given

from tests.kit.local import LocalWorkers
from tests.properties.test_counted import Alternative
from tests.properties.test_counted import Case as Counted
from tests.properties.test_counted import Counted as Rows
from tests.properties.test_counted import block as counted_block
from tests.properties.test_counted import cases as counted_cases
from tests.properties.test_counted import found_in as counted_results
from tests.properties.test_join_trees import (
    END,
    PREDICATES,
    SECOND,
    Case,
    Step,
    Term,
    block,
    cases,
    found_in,
)
from wjoin.executor.counts import Counts
from wjoin.executor.report import NOTHING_FIRST, NOTHING_SEEN
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.syntax import Per
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.sources.site_leases import horizon


def floors(plan: PhysicalPlan, seen: Mapping[int, int], counts: Counts | None = None) -> list[int | None]:
    """Return from which event time on a site must keep rows of each stream, by what a query has told."""
    marks = {plan.streams[stream].alias: time - plan.streams[stream].delay for stream, time in seen.items()}
    kept = {
        plan.streams[stream].alias: report["kept_from"]
        for stream, report in (counts.streams.items() if counts is not None else ())
        if report["kept_from"] not in (NOTHING_FIRST, NOTHING_SEEN)
    }
    return [horizon(plan, stream, marks, kept) for stream in plan.staged]


def check(case: Case) -> list[list[int | None]]:
    """Return what sites are told after each micro-batch of a case; no later result has a row before that."""
    try:
        plan = case.plan()
    except WJoinError:
        # No row can be inside the windows, or a condition may hold of what is not there.
        return []
    if any(scan.filters or scan.meets for scan in plan.streams):
        return []
    workers, shown = (
        LocalWorkers(plan, predicates=PREDICATES),
        [n for n in range(len(case.delays)) if n not in case.hidden],
    )
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


@given(counted_cases())
def test_a_site_has_each_row_of_a_result_that_waits_for_counts(case: Counted) -> None:
    plan = case.planned.physical
    workers = LocalWorkers(plan, 2)
    told: list[list[int | None]] = []
    times: list[dict[int, int]] = [{} for _ in case.delays]
    for number, batch in enumerate(case.batches):
        counts = Counts()
        ended = case.ends and number == len(case.batches) - 1
        blocks = {stream: counted_block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
        for result in counted_results(plan, workers.run(blocks, counts, ended=ended)):
            for stream, row in enumerate(result):
                # New rows have not been read, so that a site has them.
                if told and row in times[stream] and told[-1][stream] is not None:
                    assert times[stream][row] * SECOND >= (told[-1][stream] or 0), (case, result)
        for stream, rows in enumerate(batch):
            times[stream] |= {row[0]: row[1] for row in rows}
        told.append(floors(plan, workers.manifest(-1).seen, counts))


def test_without_a_window_in_time_rows_are_kept_until_enough_later_ones_have_come() -> None:
    counted = [Rows(0, 3), Rows(1, 2, Per.KEY)]
    plan = Counted([Alternative([None], counted)], [(0, 1, 0)], [4, 2], [], False, {}).planned.physical
    workers, told = LocalWorkers(plan, 2), []
    for step in range(60):
        counts, rows = Counts(), [(each, 5 * step + each, each % 2, 0, False) for each in range(5)]
        workers.run({stream: counted_block(plan, stream, rows) for stream in (0, 1)}, counts)
        told.append(floors(plan, workers.manifest(0).seen, counts))
    # Of the state some rows stay for a while.
    newest = 5 * 59 + 4
    assert [newest - (time or 0) // SECOND < 60 for time in told[-1]] == [True, True]
