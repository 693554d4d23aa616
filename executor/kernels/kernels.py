"""The kernel that a plan names."""

from wjoin.executor.kernels.candidates import WindowKernel
from wjoin.executor.kernels.hash_window import HashWindow
from wjoin.executor.kernels.merge_window import MergeWindow
from wjoin.executor.kernels.nested_window import NestedWindow
from wjoin.executor.kernels.ordered_window import OrderedWindow
from wjoin.planner.physical import Kernel

KERNELS: dict[Kernel, WindowKernel] = {
    # ADAPTIVE is not among them: a worker runs one of these in its place.
    Kernel.HW: HashWindow(),
    Kernel.MW: MergeWindow(),
    Kernel.NLW: NestedWindow(),
    Kernel.ORDERED: OrderedWindow(),
}
