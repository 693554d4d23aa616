"""The kernel that a plan names."""

from wjoin.executor.kernels.candidates import WindowKernel
from wjoin.executor.kernels.hash_window import HashWindow
from wjoin.executor.kernels.merge_window import MergeWindow
from wjoin.executor.kernels.nested_window import NestedWindow
from wjoin.planner.physical import Kernel

KERNELS: dict[Kernel, WindowKernel] = {
    Kernel.HW: HashWindow(),
    Kernel.MW: MergeWindow(),
    Kernel.NLW: NestedWindow(),
}
