"""The DuckDB oracle against brute force, and the cases that the strategies draw."""

from collections import Counter

import pytest
from hypothesis import given, note, settings

from tests.kit.lateness import expected_batches, surviving
from tests.kit.oracle import brute_force, combinations, expected
from tests.kit.statement import text
from tests.kit.strategies import Case, cases
from tests.tiers import examples


@settings(max_examples=examples(80))
@given(cases(max_streams=4, max_rows=6))
def test_duckdb_and_brute_force_agree(case: Case) -> None:
    note(text(case.statement, case.style))
    assert combinations(case.statement, case.tables) == brute_force(case.statement, case.tables)


@pytest.mark.long
def test_most_cases_have_results() -> None:
    sizes: list[int] = []

    @settings(max_examples=80, deadline=None, derandomize=True)
    @given(cases())
    def draw(case: Case) -> None:
        sizes.append(len(combinations(case.statement, case.tables)))

    draw()
    assert sum(size > 0 for size in sizes) >= 0.6 * len(sizes)


@settings(max_examples=examples(60))
@given(cases(max_streams=3, max_batches=5))
def test_micro_batches_without_late_rows_add_up_to_the_batch_result(case: Case) -> None:
    left = surviving(case.statement, case.batches)
    whole = expected(case.statement, {alias: each.table for alias, each in left.items()})
    parts = sum(expected_batches(case.statement, case.batches), Counter())
    assert parts == whole
    if not any(sum(each.late) for each in left.values()):
        assert whole == expected(case.statement, case.tables)


@settings(max_examples=examples(60))
@given(cases(max_batches=5, disorder=False))
def test_disorder_inside_the_delay_makes_no_row_late(case: Case) -> None:
    assert not any(sum(each.late) for each in surviving(case.statement, case.batches).values())


@pytest.mark.long
def test_some_cases_have_late_rows() -> None:
    late: list[int] = []

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(cases(min_batches=2, max_batches=5))
    def draw(case: Case) -> None:
        late.append(sum(sum(each.late) for each in surviving(case.statement, case.batches).values()))

    draw()
    assert sum(count > 0 for count in late) >= 0.1 * len(late)
