"""What the soak calls level, and what it says grows."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from levels import Curve, level

HOUR = range(3600)


def curve(values: list[float], tolerance: float = 0.05, slack: float = 0.0) -> Curve:
    return Curve("memory", "MB", tolerance, slack, tuple(map(float, HOUR)), tuple(values))


def test_what_fills_at_first_and_then_stays_is_level():
    assert not level(curve([min(second, 1000) + second % 7 for second in HOUR])).grows


def test_what_rises_on_and_on_grows_and_the_slope_is_told():
    found = level(curve([1000 + second / 10 for second in HOUR]))
    assert found.grows
    assert found.slope == pytest.approx(360, rel=0.01)


def test_a_rise_within_tolerance_or_slack_is_level():
    values = [1000 + second / 100 for second in HOUR]
    assert not level(curve(values)).grows
    assert level(curve(values, tolerance=0.005)).grows
    assert not level(curve(values, tolerance=0.005, slack=20)).grows


def test_what_falls_is_level():
    assert not level(curve([5000.0 - second for second in HOUR])).grows


def test_a_third_without_values_cannot_be_judged():
    with pytest.raises(ValueError, match="too few values"):
        level(Curve("memory", "MB", 0.05, 0, (0.0, 1.0, 100.0), (1.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match="too few values"):
        level(Curve("memory", "MB", 0.05, 0, (0.0,), (1.0,)))
