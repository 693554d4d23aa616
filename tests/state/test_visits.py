"""What an approximate join loses, as progress and a warning tell it."""

import warnings

import pytest

from tests.state.test_silence import counts, report
from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.points import Point, point
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.visits import Visits, node_rows, visits_of_a_row, visits_words

LOST = {"missing": 100_000, "missing_least": 50_000, "missing_most": 200_000}
TOLD = {"visits": 30, "trials": 4, "summary_bytes": 800, "matches": 900, **LOST}


def micro_batch(second: int, **more: int) -> MicroBatchReport:
    return report(second, {**counts(10, 10, seen=(10, 10), kept=(1, 1)), **more})


def test_progress_tells_visits_and_what_is_lost() -> None:
    progress = micro_batch(0, **TOLD).progress
    assert (progress.visits, progress.trials, progress.summary_bytes) == (30, 4, 800)
    assert progress.results_lost == pytest.approx((0.1, 0.05, 0.2))
    assert visits_of_a_row(progress) == 1.5


def test_visits_are_told_by_node() -> None:
    of_nodes = {"homed@0": 10, "visits@0": 5, "summary_bytes@0": 40, "homed@10": 10, "visits@10": 25}
    progress = micro_batch(0, **TOLD, **of_nodes).progress
    assert progress.rows_by_node == {"1": 10, "11": 10}
    assert visits_words(progress).startswith("1.5 visits a row (0.5 to 2.5 by node), 40 bytes")
    assert list(node_rows(progress)) == [("1", "10", "0.5", "4"), ("11", "10", "2.5", "0")]


def test_visits_of_partial_results_are_told_apart() -> None:
    first = {**counts(10, 10, seen=(10, 10), kept=(1, 1)), **TOLD, "homed@0": 20, "visits@0": 30}
    last = {"comparisons": 9, "matches": 70, "visits": 2000, "homed@0": 900, "visits@0": 2000}
    progress = report(0, first, last).progress
    assert (progress.visits, progress.partial_visits, progress.partial_results) == (2030, 2000, 900)
    assert visits_words(progress).startswith(
        "1.5 visits a row and 2.2 a partial result (45 of these a row), "
    )
    assert next(node_rows(progress))[:3] == ("1", "20", "1.5")


def test_nothing_is_known_before_the_sample_has_results() -> None:
    progress = micro_batch(0, **TOLD | {"missing": 0, "missing_least": 0, "missing_most": 1_000_000}).progress
    assert progress.results_lost == (0, 0, 1)


def test_it_is_told_once_and_again_when_far_more_is_lost() -> None:
    found = Visits("the query out")
    for second in range(5):
        found.take(micro_batch(second, **TOLD))
    with pytest.warns(WJoinWarning, match="WJ825.*1.5 visits a row") as told:
        found.tend()
        found.tend()
    assert len(told) == 1
    for second in range(5, 15):
        found.take(micro_batch(second, **TOLD | {"missing": 400_000, "missing_most": 500_000}))
    with pytest.warns(WJoinWarning, match="WJ825"):
        found.tend()
    found.take(micro_batch(15, **TOLD | {"missing": 510_000, "missing_most": 600_000}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.tend()
    with pytest.warns(WJoinWarning, match="about 51.0 % of the results lost, 5.0 to 60.0 %") as told:
        found.end()
        found.end()
    assert len(told) == 1


def test_a_short_run_tells_at_its_end() -> None:
    found = Visits("the query out")
    found.take(micro_batch(0, **TOLD))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.tend()
    with pytest.warns(WJoinWarning, match="about 10.0 % of the results lost, 5.0 to 20.0 %"):
        found.end()


def test_what_is_lost_since_the_beginning_is_what_was_told_last() -> None:
    whole = Point(begins=0, ends=0)
    for second, missing in enumerate((0, 50_000, 300_000)):
        bounds = {"missing_least": missing // 2, "missing_most": missing + 10_000}
        told = micro_batch(second, **TOLD | bounds | {"missing": missing}).progress
        whole = whole.joined(point(told, whole))
    assert whole.matches == 2700
    assert whole.results_lost == pytest.approx((0.3, 0.15, 0.31))
    # A micro-batch without results says nothing of them.
    nothing = micro_batch(3, **{"visits": 9, **LOST}).progress
    assert whole.joined(point(nothing, whole)).results_lost == pytest.approx((0.3, 0.15, 0.31))
    all_lost = micro_batch(4, **TOLD | dict.fromkeys(LOST, 1000000)).progress
    assert whole.joined(point(all_lost, whole)).results_lost == pytest.approx((1, 1, 1), abs=1e-5)


def test_an_exact_join_tells_nothing() -> None:
    found = Visits("the query out")
    for second in range(6):
        found.take(micro_batch(second, matches=900))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.tend()
        found.end()
