"""The kernels' part of `wjoin calibrate`, which needs no Spark."""

import pytest

from wjoin.calibrate import kernel_costs, timed
from wjoin.executor.kernels.kernels import KERNELS
from wjoin.planner.physical import Kernel


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_cost_of_a_kernel_is_measured(kernel):
    found = kernel_costs(kernel, 1e-8)
    expected = {f"probe_{kernel.value}", f"pair_{kernel.value}"} | (
        {"tuple"} if kernel is Kernel.MW else set()
    )
    assert found.keys() == expected
    assert all(0 < each < 1e-3 for each in found.values())


@pytest.mark.parametrize(
    ("kernel", "pairs"), [(Kernel.HW, 50), (Kernel.MW, 50), (Kernel.ORDERED, 50), (Kernel.NLW, 20_000)]
)
def test_the_runs_compare_as_many_pairs_as_they_say(kernel, pairs):
    _, compared = timed(kernel, probing=1000, held=20_000, near=50, agree=True)
    assert compared == pytest.approx(1000 * pairs, rel=0.1)
    _, compared = timed(kernel, probing=1000, held=20_000, near=0, agree=False)
    assert compared == (1000 * pairs if kernel is Kernel.NLW else 0)
