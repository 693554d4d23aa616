"""Which tests run when: marks of single cases, and the examples that property tests draw."""

import os
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet
from hypothesis import Phase, settings

from wjoin.executor.stretches import STRETCH_BYTES


def tiers(cases: Iterable[object], **marked: Iterable[object]) -> list[ParameterSet]:
    """Return cases for ``pytest.mark.parametrize``, some of them marked: ``tiers(CASES, long=["chain"])``.

    A marked case that is none of the cases raises a ValueError.
    """
    cases = list(cases)
    marks: list[list[pytest.MarkDecorator]] = [[] for _ in cases]
    for name, chosen in marked.items():
        for case in chosen:
            marks[cases.index(case)].append(getattr(pytest.mark, name))
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*values, marks=own) for values, own in zip(several, marks, strict=True)]


CUTS = tiers(
    [(1, STRETCH_BYTES), (2, 200), (3, STRETCH_BYTES)], long=[(1, STRETCH_BYTES), (3, STRETCH_BYTES)]
)
"""How many workers share a stage, and the bytes of rows that each joins at once."""


def examples(many: int) -> int:
    """Return how many examples a property test draws: ``many`` in `make long`, fewer in `make test`."""
    return max(3, many * settings.default.max_examples // 100)


EXAMPLES = int(os.environ.get("WJOIN_EXAMPLES", "1"))
"""How many times the usual number of examples the tests of any statement on Spark try."""

PHASES = [
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
    *([Phase.shrink] if "WJOIN_SHRINK" in os.environ else []),
]
"""Shrinking runs Spark hundreds of times, so only on demand; the cases are small as they are."""
