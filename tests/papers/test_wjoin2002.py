"""The joins that W-join 2002 is compared with give the kernels' results; its experiments run."""

import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import wjoin2002
from baselines import RIPPLE, XJOIN, AdaptedJoin
from hypothesis import given, settings
from hypothesis import strategies as st
from loads import SECOND, Load, Stream, by_time, by_turns
from report import Claim, Table, Verdict, claims_table, fill_in
from service import DisagreementError, Join, KernelJoin, measure
from window_plans import Choice, one_window, pair_windows, path, window_plan
from wjoin2002_joins import THE_PAPERS, Scale

from tests.tiers import examples
from wjoin.executor.report import Report
from wjoin.parts.kernels.kernel import Kernel
from wjoin.planner.plan.physical import Passes, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Bounds

pytestmark = pytest.mark.thorough

Combination = tuple[int, ...]

# Small values and times, so that there are matches, ties, and rows outside of the windows.
TICK = SECOND // 50
streams = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), min_size=1, max_size=25),
    min_size=2,
    max_size=4,
)
WINDOWS = {
    "one window": lambda count: one_window(10 * TICK),
    "pairs": lambda count: pair_windows(count, 6 * TICK, 12 * TICK),
    "path": lambda count: path([6 * TICK] * (count - 1)),
}


def stream_of(rows: list[tuple[int, int]]) -> Stream:
    times, values = zip(*sorted(rows), strict=True)
    return Stream(np.array(times, np.int64) * TICK, np.array(values, np.int64))


def combinations(join: Join, load: Load) -> Counter[tuple[Combination, int]]:
    """Return the event times of every combination, with its value."""
    found: Counter[tuple[Combination, int]] = Counter()
    for arrivals in load.batches:
        for batch in join.batch(arrivals, Report()):
            columns = batch.to_pydict()
            names = [f"t{number}" for number in range(len(arrivals.blocks))]
            times = zip(*(columns[name] for name in names), strict=True)
            found.update(zip(times, columns["k0_0"], strict=True))
    return found


def expected(plan: PhysicalPlan, each: list[Stream]) -> Counter[tuple[Combination, int]]:
    """Return every combination by the definition."""
    rows = [list(zip(one.times.tolist(), one.values.tolist(), strict=True)) for one in each]
    found: Counter[tuple[Combination, int]] = Counter()
    for combination in itertools.product(*rows):
        times = tuple(time for time, _ in combination)
        inside = any(
            all(
                times[j] - times[i] <= (windows.between(i, j) or 0)
                for i, j in itertools.product(range(windows.size), repeat=2)
            )
            for windows in plan.branches or (plan.windows,)
        )
        if inside and len({value for _, value in combination}) == 1:
            found[times, combination[0][1]] += 1
    return found


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("kernel, search", [("nlw", RIPPLE), ("hw", XJOIN)], ids=["ripple", "xjoin"])
@settings(max_examples=examples(40))
@given(rows=streams, cleaned_every=st.integers(1, 40), turns=st.booleans())
@pytest.mark.long
def test_baselines_find_what_the_kernels_find(
    windows: str,
    kernel: str,
    search: Kernel,
    rows: list[list[tuple[int, int]]],
    cleaned_every: int,
    turns: bool,
) -> None:
    each = [stream_of(one) for one in rows]
    load = by_turns(each) if turns else by_time(each, 0)
    plan = window_plan(len(each), WINDOWS[windows](len(each)), Choice(kernel))
    found = combinations(AdaptedJoin(plan, search, cleaned_every), load)
    assert found == combinations(KernelJoin(plan), load)
    assert found == expected(plan, each)


def random_load(rows: int) -> Load:
    random = np.random.default_rng(7)
    return by_time(
        [
            Stream(np.sort(random.integers(0, 3 * SECOND, rows)), random.integers(0, 5, rows))
            for _ in range(3)
        ],
        0,
    )


def test_every_choice_has_the_same_results_and_fewer_comparisons_than_a_ripple_join() -> None:
    load = random_load(40)
    windows = path([SECOND // 4] * 2)
    choices = itertools.product(THE_PAPERS, Bounds, Passes)
    joins = {
        str(choice): lambda choice=choice: KernelJoin(window_plan(3, windows, Choice(*choice)))
        for choice in choices
    }
    ripple = window_plan(3, windows, Choice("nlw"))
    measured = measure({"ripple": lambda: AdaptedJoin(ripple, RIPPLE), **joins}, load, 1)
    most = measured["ripple"]
    exact = str(("hw", Bounds.EXACT, Passes.HULL))
    assert most.found.count > 0
    assert most.compared > measured[exact].compared
    assert most.microseconds > 0


def test_joins_with_different_results_are_refused() -> None:
    load = random_load(60)
    plans = [window_plan(3, one_window(width * SECOND), Choice("mw")) for width in (1, 2)]
    with pytest.raises(DisagreementError):
        measure({"one": lambda: KernelJoin(plans[0]), "two": lambda: KernelJoin(plans[1])}, load, 1)


@pytest.mark.long
def test_tables_replace_what_stands_between_their_marks(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("a\n<!-- table one -->\nold\n<!-- end -->\nb\n<!-- table two -->\n<!-- end -->\n")
    fill_in(document, [Table("one", "", ["x"], [["1"]])])
    filled = "a\n<!-- table one -->\n\n| x |\n| --- |\n| 1 |\n\n<!-- end -->\n"
    assert document.read_text() == filled + "b\n<!-- table two -->\n<!-- end -->\n"


@pytest.mark.long
def test_claims_say_whether_they_held() -> None:
    claim = Claim("1", "a", Verdict(True, "x"), Verdict(False, "y"))
    assert claim.printed() == "  1: a\n    time: held (x)\n    comparisons: did not hold here (y)"
    assert claims_table([claim]).lines == [["1", "a", "held", "x", "did not hold here", "y"]]


def test_the_smallest_experiment_runs_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(wjoin2002, "QUICK", Scale(1000, 1))
    assert wjoin2002.main(["--quick", "--parts", "bounds", "--plots", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Figure 13" in printed
    verdict = r"LCA takes less than GCA.*\n.*(held|did not hold here).*\n.*(held|did not hold here)"
    assert len(re.findall(verdict, printed)) == 2
    assert (tmp_path / "wjoin2002-fig13.svg").stat().st_size < 200_000
