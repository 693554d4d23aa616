"""What the benchmark of joins without a key joins: conditions are complete, and pairs are counted right."""

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from theta_loads import CONDITIONS, ThetaLoad, called, predicates, write_theta

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_part_of_a_condition_has_one_place_in_a_chain(name: str):
    condition = CONDITIONS[name]
    found = [*condition.within("ab"), *condition.within("abc")]
    wanted = [re.sub(r"\b([ABC])\.", lambda name: f"{name[1].lower()}_", part) for part in condition.parts]
    assert sorted(found) == sorted(wanted)


def test_pairs_are_those_inside_the_window(tmp_path: Path):
    load = ThetaLoad(window=5, batch_rows=800, batches=4)
    write_theta(load, tmp_path)
    first, second = (
        np.sort(pq.read_table(tmp_path / stream).column("ts").cast("int64").to_numpy()) for stream in "ab"
    )
    window = load.window * 1_000_000
    inside = np.searchsorted(second, first + window, "right") - np.searchsorted(second, first - window)
    assert inside.sum() == pytest.approx(load.pairs, rel=0.02)


def test_signals_are_alike_where_they_are_the_same_shifted():
    signals = np.random.default_rng(7).normal(size=(2, 1024))
    alike = predicates()["alike"]
    assert alike(signals, np.roll(signals, 300, axis=1)) == pytest.approx([1, 1])
    assert (alike(signals, signals[::-1]) < 0.5).all()


def test_a_condition_names_its_predicate():
    assert called(ThetaLoad(5, 800, 4, condition="predicate")) == "alike"
    assert called(ThetaLoad(5, 800, 4, condition="band")) is None
