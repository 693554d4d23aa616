"""Random statements over random rows in random micro-batches, against the oracle and the lateness model."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.kit.check import assert_stream
from tests.kit.lateness import surviving
from tests.kit.statement import text
from tests.kit.strategies import Case, fruitful_cases
from tests.tiers import EXAMPLES, PHASES, tiers
from wjoin import progress
from wjoin.testing.harness import Run

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("streams", tiers([2, 3, 4, 5], long=[3], core=[3]))
def test_any_cut_into_micro_batches_gives_the_defined_result(session: Any, streams: int) -> None:
    sizes: list[int] = []

    @settings(max_examples=4 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(
        fruitful_cases(min_streams=streams, max_streams=streams, min_batches=2, max_batches=5),
        st.integers(0, 8),
    )
    def check(case: Case, restart: int) -> None:
        note(text(case.statement, case.style))
        run = assert_stream(session, case.statement, case.batches, case.style, restarts=[restart])
        sizes.append(run.bag.total())
        assert_counts(case, run)

    check()
    assert sum(size > 0 for size in sizes) >= 0.5 * len(sizes)


def assert_counts(case: Case, run: Run) -> None:
    """Assert that the progress of the query counts late and undated rows as the model does."""
    reports = {report["batchId"]: progress.read(report) for report in run.progress}
    for alias, left in surviving(case.statement, case.batches).items():
        for name, wanted in (("late", left.late), ("null_times", left.null_times)):
            counted = [getattr(report, name).get(alias, 0) for report in reports.values()]
            assert sum(counted) == sum(wanted), (alias, name, counted, wanted)
