"""Random statements over random rows in batch, against the DuckDB oracle."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.kit.check import assert_batch
from tests.kit.statement import text
from tests.kit.strategies import Case, fruitful_cases
from tests.tiers import EXAMPLES, PHASES, tiers

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("streams", tiers([2, 3, 4, 5], long=[3], core=[3]))
def test_any_statement_in_batch_gives_the_defined_result(session: Any, streams: int) -> None:
    sizes: list[int] = []

    @settings(max_examples=7 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(fruitful_cases(min_streams=streams, max_streams=streams))
    def check(case: Case) -> None:
        note(text(case.statement, case.style))
        sizes.append(assert_batch(session, case.statement, case.tables, case.style).total())

    check()
    assert sum(size > 0 for size in sizes) >= 0.5 * len(sizes)
