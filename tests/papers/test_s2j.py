"""S2J: its equations, and its experiments with few points: which claims hold, and which do not."""

import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import s2j
from s2j_blocks import in_blocks, rows_of
from s2j_chain import Wave, chain, routed
from s2j_parts import claims_table
from s2j_shedding import block_rows
from s2j_tasks import Load, alone, own_windows, together, worked

from tests.tiers import tiers
from wjoin.executor.blocks import cut, decode_block
from wjoin.executor.spark import messages
from wjoin.parts.routes.route import Role
from wjoin.planner.cost.shed_share import LINEAR, QUADRATIC, Thresholds, shedding_ratio

PAPER = Thresholds()

HELD = {
    "tasks": [True, True, True],
    "kinds": [False],
    "bands": [True],
    "bytes": [True, True],
    "efficiency": [True, False],
    "blocks": [True, False],
    "batches": [True],
    "false": [True, True, False],
    "case": [True, True, True],
    "keys": [True],
}
"""Which claims of each part hold; those that do not are told in docs/papers/s2j.md."""


@pytest.mark.parametrize(
    "part", tiers(HELD, quick=["blocks"], long=[each for each in HELD if each != "blocks"])
)
def test_what_holds_of_the_claims(part: str) -> None:
    claims = s2j.PARTS[part](quick=True).claims
    assert [each.verdict.held for each in claims] == HELD[part], claims_table(part, claims).text()


@pytest.mark.quick
def test_the_shedding_ratio_as_computed_by_hand() -> None:
    """Section 3.2.2: SR = B + (1 - B) / (1 - τ1) (τ - τ1) above τ1, else 0."""
    based = replace(PAPER, base=0.2)
    assert [shedding_ratio(each, 0.8, based) for each in (LINEAR, QUADRATIC)] == [0, 0]
    assert shedding_ratio(LINEAR, 0.9, based) == pytest.approx(0.2 + 0.8 * 0.5)
    assert shedding_ratio(QUADRATIC, 0.9, based) == pytest.approx(0.2 + 0.8 * 0.25)
    assert [shedding_ratio(model, each, based) for model in (LINEAR, QUADRATIC) for each in (1.0, 1.7)] == [
        1.0
    ] * 4


@pytest.mark.quick
@pytest.mark.parametrize("wrong", [{"idle": 0.0}, {"expected": 0.1}, {"growing": 0.7}])
def test_thresholds_have_an_order(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="0 < τ0"):
        replace(PAPER, **wrong)


@pytest.mark.quick
def test_blocks_are_large_until_workers_are_nearly_full() -> None:
    sizes = [block_rows(each, PAPER, 20) for each in (0.1, 0.4, 0.6, 0.79, 0.8, 0.9)]
    assert sizes == [20, 20, math.ceil(20 * 0.5**0.5), 4, 1, 1]


@pytest.mark.long
def test_rows_cost_by_the_rate_and_pairs_by_its_square() -> None:
    """What ``sustained`` rests on."""
    (plan,) = together(own_windows(2))
    slow, fast = (worked(plan, Load(rate=rate, keys=20_000), 2).terms for rate in (1000, 2000))
    for name, value in fast.items():
        times = 4 if name in ("comparisons", "tuples", "results") else 2
        assert value == pytest.approx(times * slow[name], rel=0.1), name


@pytest.mark.quick
@pytest.mark.parametrize("columns", [2, 30, 60, 200])
def test_headers_are_a_twentieth_of_full_blocks_at_most(columns: int) -> None:
    rows = rows_of(columns, 5000)
    assert in_blocks(rows, None).headers <= messages.HEADERS
    found = [decode_block(bytes(each["block"])) for each in messages.blocks(0, 0, Role.BOTH, rows)]
    assert len(found) == len(list(cut(rows, 5000, messages.full_block(columns))))
    assert pa.concat_batches(found) == rows


@pytest.mark.long
def test_rows_are_spread_alike_by_a_chain_of_short_blocks_and_by_slices() -> None:
    wave = Wave(rate=50, length=180)
    assert chain(wave, lambda _: 1).busiest < 1.01
    assert routed(wave, 20).busiest < 1.03
    assert chain(wave, lambda _: 1).rows.sum() == pytest.approx(routed(wave, 20).rows.sum(), rel=0.02)


@pytest.mark.quick
def test_the_document_has_a_place_for_every_table() -> None:
    text = s2j.DOCUMENT.read_text("utf-8")
    for name in [*s2j.PARTS, *(f"{part}-claims" for part in s2j.PARTS), "columns"]:
        assert f"<!-- table {name} -->" in text
    for name in Path(s2j.DOCUMENT.parent).glob("s2j-*.svg"):
        assert f"({name.name})" in text


@pytest.mark.quick
def test_a_task_alone_is_no_set() -> None:
    (task,) = own_windows(1)
    assert together([task]) == (alone(task),)
