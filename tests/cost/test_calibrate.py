"""The kernels' part of `wjoin calibrate`, which needs no Spark."""

import pytest

from tests.tiers import tiers
from wjoin.commands.calibrate import kernel_costs, timed
from wjoin.parts.kernels.registry import KERNELS


@pytest.mark.parametrize("kernel", tiers(KERNELS, long=["nlw"]))
def test_every_cost_of_a_kernel_is_measured(kernel):
    found = kernel_costs(KERNELS[kernel], 1e-8)
    expected = {f"probe_{kernel}", f"pair_{kernel}"} | ({"tuple"} if kernel == "mw" else set())
    assert found.keys() == expected
    assert all(0 < each < 1e-3 for each in found.values())


@pytest.mark.parametrize(
    ("kernel", "pairs"),
    tiers([("hw", 50), ("mw", 50), ("ordered", 50), ("nlw", 20_000)], thorough=[("nlw", 20_000)]),
)
def test_the_runs_compare_as_many_pairs_as_they_say(kernel, pairs):
    _, compared = timed(KERNELS[kernel], probing=1000, held=20_000, near=50, agree=True)
    assert compared == pytest.approx(1000 * pairs, rel=0.1)
    _, compared = timed(KERNELS[kernel], probing=1000, held=20_000, near=0, agree=False)
    assert compared == (1000 * pairs if kernel == "nlw" else 0)
