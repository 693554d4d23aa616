"""Which tests run when: marks of single cases, and the examples that property tests draw."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

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
