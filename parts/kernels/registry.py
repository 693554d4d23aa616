"""The kernels that there are, by name, in the order in which plans are weighed.

What a stage may use is a tuple of names: one kernel, or those among which its workers choose.
"""

from collections.abc import Sequence

from wjoin.parts.kernels import adaptive
from wjoin.parts.kernels.hash_window import HashWindow
from wjoin.parts.kernels.kernel import Kernel, Refusal
from wjoin.parts.kernels.merge_window import MergeWindow
from wjoin.parts.kernels.nested_window import NestedWindow
from wjoin.parts.kernels.ordered_window import OrderedWindow

KERNELS: dict[str, Kernel] = {
    each.name: each for each in (HashWindow(), MergeWindow(), NestedWindow(), OrderedWindow())
}


def kernels_of(name: str) -> tuple[str, ...]:
    """Return the kernels that a hint or setting names.

    >>> kernels_of("nlw"), kernels_of("adaptive")
    (('nlw',), ('hw', 'mw'))
    """
    return adaptive.AMONG if name == adaptive.NAME else (name,)


def first_usable(*, keyed: bool, indexed: bool) -> tuple[str, ...]:
    """Return the kernels of a stage until the choice is made: the first one that it can use."""
    return next((name,) for name in KERNELS if refusal_of((name,), keyed=keyed, indexed=indexed) is None)


def name_of(kernels: Sequence[str]) -> str:
    """Return the name of what a stage uses, as hints, settings and EXPLAIN have it."""
    return adaptive.NAME if len(kernels) > 1 else kernels[0]


def words_of(kernels: Sequence[str], *, keyed: bool) -> str:
    """Return how a stage finds the partners of a row; without a key nothing is found by it."""
    return adaptive.WORDS if len(kernels) > 1 else KERNELS[kernels[0]].words[0 if keyed else 1]


def meaning_of(name: str) -> str:
    """Return the same for a picture of the plan, by the name that EXPLAIN has."""
    return adaptive.MEANING if name == adaptive.NAME else KERNELS[name].meaning


def refusal_of(kernels: Sequence[str], *, keyed: bool, indexed: bool) -> Refusal | None:
    """Return why a stage cannot use these, None where it can."""
    found = (KERNELS[each].refusal(keyed=keyed, indexed=indexed) for each in kernels)
    return next((each for each in found if each is not None), None)
