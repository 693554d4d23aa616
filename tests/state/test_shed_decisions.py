"""Decisions of what to shed: they follow the load, settle, and are taken once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wjoin.executor.shedding import NOTHING, Decision, Measured, Shedder, next_decision
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.worker_files import WorkerFiles, stage_folder, worker_folder
from wjoin.grammar.errors import WJoinError
from wjoin.planner.cost.shed_share import LINEAR, OFF, QUADRATIC
from wjoin.planner.plan.shedding_models import Shedding, SheddingRules, StreamShedding

NOW = 1_770_000_000.0
SECOND = 1_000_000


def shedding(*models: str, **rules: Any) -> Shedding:
    """Return how streams that meet on one key are shed, whose rows are met for ten seconds."""
    streams = tuple(StreamShedding(number, model, 0) for number, model in enumerate(models))
    return Shedding(SheddingRules(**rules), streams, 10 * SECOND, clocked=True, fixed=0.1)


def after(seen: float, before: float | None, busy: float, clock: float = NOW) -> Measured:
    """Return what is known after a micro-batch, by the newest event time after it and the one before."""
    old = {} if before is None else {0: round(before * SECOND), 1: round(before * SECOND)}
    new = {0: round(seen * SECOND), 1: round(seen * SECOND)}
    return Measured(0, 0, new, old, busy, clock)


def simulated(
    kind: Shedding, work: float, micro_batches: int, most: float | None = None, fixed: float = 0.3
) -> list[tuple[float, Decision]]:
    """Return lag and decision of each micro-batch whose rows of a second take ``work`` seconds.

    ``most``: the seconds of event time that one reads at the most.
    """
    clock, seen, before = NOW, NOW - 1.0, None
    decision, busy = NOTHING, work
    found = []
    for _ in range(micro_batches):
        decision = next_decision(kind, decision, after(seen, before, busy, clock), (0, 0))
        came = clock - seen if most is None else min(most, clock - seen)
        busy = 0.1 + work * came * (1 - decision.ratios[0])
        clock, before, seen = clock + busy + fixed, seen, seen + came
        found.append((clock - seen, decision))
    return found


@pytest.mark.parametrize("model", [LINEAR, QUADRATIC])
@pytest.mark.parametrize("most", [None, 4.0])
def test_an_overload_of_twice_the_rate_settles(model: str, most: float | None) -> None:
    shed = simulated(shedding(model, model), 2.0, 60, most)
    lags = [lag for lag, _ in shed]
    last = shed[-1][1]
    assert 0.8 < last.utilization < 1
    assert last.ratios[0] == pytest.approx(1 - last.utilization / 2, abs=0.1)
    assert max(lags[-20:]) < 30
    without = simulated(shedding(OFF, OFF), 2.0, 12, most)
    assert without[-1][0] > max(without[-4][0] + 10, max(lags))


@pytest.mark.parametrize("work", [0.05, 0.5, 0.75])
@pytest.mark.parametrize("fixed", [0.2, 3.0])
def test_a_join_that_keeps_up_sheds_nothing(work: float, fixed: float) -> None:
    assert not any(
        decision.ratios[0] for _, decision in simulated(shedding(LINEAR, LINEAR), work, 40, fixed=fixed)
    )


def test_shedding_ends_with_the_overload() -> None:
    kind = shedding(LINEAR, LINEAR)
    decision = replace(NOTHING, demand=2.0, ratios={0: 0.5, 1: 0.5}, lost=0.5)
    for second in range(12):
        decision = next_decision(kind, decision, after(NOW + second + 1, NOW + second, 0.5), (0, 0))
    assert decision.ratios == {0: 0, 1: 0}


def test_times_that_are_not_of_the_present_tell_nothing() -> None:
    kind = shedding(LINEAR, LINEAR)
    for measured in (
        after(1000.0, 999.0, 60.0),
        after(NOW, None, 60.0),
        after(NOW, NOW, 60.0),
        replace(after(NOW, NOW - 1, 60.0), busy=None),
    ):
        assert next_decision(kind, NOTHING, measured, (0, 0)).ratios == {0: 0, 1: 0}
    unclocked = replace(kind, clocked=False)
    assert next_decision(unclocked, NOTHING, after(NOW, NOW - 1, 60.0), (0, 0)).time == 0
    assert next_decision(kind, NOTHING, after(NOW, NOW - 1, 60.0), (0, 0)).ratios[0] > 0.9


def test_the_state_sheds_by_itself() -> None:
    kind = shedding(LINEAR, OFF, memory=100)
    decision = next_decision(kind, NOTHING, replace(after(1000.0, 999.0, 1.0), state=90), (0, 0))
    assert decision.ratios == {0: pytest.approx(0.5), 1: 0}
    # A result needs a key that both keep.
    assert (decision.utilization, decision.lost) == (0.9, pytest.approx(0.5))


def test_what_was_lost_is_remembered_as_long_as_its_rows_could_be_met() -> None:
    kind = shedding(LINEAR, LINEAR, memory=100)
    decision = next_decision(kind, NOTHING, replace(after(1000.0, None, 1.0), state=90), (0, 0))
    assert decision.lost_most == pytest.approx(0.5)
    remembered = []
    for second in range(1, 14):
        decision = next_decision(kind, decision, after(1000.0 + second, 999.0 + second, 1.0), (0, 0))
        remembered.append(decision.lost_most)
    # The rows of the micro-batch that shed are at most as late as 1001 s, and are met for ten seconds.
    assert remembered == [pytest.approx(0.5)] * 11 + [0.0] * 2
    endless = replace(kind, reach=None)
    decision = replace(NOTHING, lost=0.5)
    for second in range(100):
        decision = next_decision(endless, decision, after(1000.0 + second, 999.0 + second, 1.0), (0, 0))
    assert decision.lost_most == 0.5


def test_the_first_decision_stays(tmp_path: Path) -> None:
    folder = tmp_path / "wjoin/state/0"
    worker = worker_folder(stage_folder(folder, 0), 0)
    worker.mkdir(parents=True)
    WorkerFiles(worker, 0).commit(Manifest.fresh("plan", 1, 2).encode())
    first = Shedder(shedding(LINEAR, LINEAR, memory=10), folder, (1,), (0, 0))
    made = first.decision(folder, 1)
    later = replace(first, shedding=shedding(QUADRATIC, QUADRATIC, memory=1))
    assert later.decision(folder, 1) == made
    off = replace(first, shedding=shedding(OFF, OFF))
    (folder / "shed/1").write_text(json.dumps({**json.loads((folder / "shed/1").read_text()), "lost": 0.25}))
    assert off.decision(folder, 1).lost == 0.25
    assert off.decision(folder, 2) is NOTHING
    assert not (folder / "shed/2").exists()
    for number in range(2, 7):
        first.decision(folder, number)
    assert sorted(each.name for each in (folder / "shed").iterdir()) == ["4", "5", "6"]
    (folder / "shed/6").write_text("{}")
    with pytest.raises(WJoinError, match="WJ719"):
        first.decision(folder, 6)
