"""Predicates: vectorised Python functions over pairs of rows, called for the pairs that are left to them.

A predicate never sees NULL: a pair with a NULL argument has no score, as by Spark's own functions.
"""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Literal, overload

Returns = Literal["boolean", "double"]
"""What a predicate says of a pair: whether it matches, or a score."""

Arrays = Literal["numpy", "arrow"]
"""What a predicate is given: NumPy arrays, or Arrow's."""

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Predicate:
    """A function over pairs of rows, and what the planner is to know of it.

    ``function`` takes an array of n values for each argument, and returns n booleans, or n numbers where
    ``returns`` is ``double``; None among them is NULL. With ``arrays`` ``numpy`` numbers, truth values and
    times are arrays of their type, arrays of numbers of one length and binary values of one size (as uint8)
    are matrices (n, length), and all else is an array of objects. ``cost_us``: microseconds of one core that
    a pair takes, ``selectivity``: the share of pairs for which a condition on it holds; None where that is
    not known.
    """

    name: str
    function: Callable[..., Any]
    returns: Returns = "boolean"
    arrays: Arrays = "numpy"
    cost_us: float | None = None
    selectivity: float | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a predicate is called by its name in SQL, which {self.name!r} is not")
        if self.returns not in ("boolean", "double"):
            raise ValueError(f"the predicate {self.name} returns boolean or double, not {self.returns!r}")
        if self.arrays not in ("numpy", "arrow"):
            raise ValueError(f"the predicate {self.name} takes arrays of numpy or arrow, not {self.arrays!r}")
        if self.cost_us is not None and not (math.isfinite(self.cost_us) and self.cost_us > 0):
            raise ValueError(f"cost_us of the predicate {self.name} is a number above zero")
        if self.selectivity is not None and not 0 < self.selectivity <= 1:
            raise ValueError(f"selectivity of the predicate {self.name} is above 0 and at most 1")

    def __call__(self, *arguments: Any) -> Any:
        """Call the function as it is, on arrays."""
        return self.function(*arguments)

    def __reduce__(self) -> tuple[object, ...]:
        if self.built_in:
            # They are on every worker.
            return _built_in, (self.name,)
        return Predicate, tuple(getattr(self, each.name) for each in fields(self))

    @property
    def built_in(self) -> bool:
        """Whether it is one of wjoin's own, under its own name."""
        function = self.function
        own = (getattr(function, "__module__", None) or "").startswith(f"{__package__}.")
        return own and self.name == function.__name__

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def arguments(self) -> str:
        """The function's parameters, as they are written; dots where it does not tell them."""
        signature = self._signature
        return "…" if signature is None else ", ".join(signature.parameters)

    def takes(self, count: int) -> bool:
        """Return whether the function can be called with so many arguments, as far as it tells."""
        signature = self._signature
        try:
            if signature is not None:
                signature.bind(*range(count))
        except TypeError:
            return False
        return True

    @property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except ValueError:
            # Some functions in C have none.
            return None


@overload
def predicate(
    function: Callable[..., Any],
    /,
) -> Predicate: ...
@overload
def predicate(
    *,
    name: str | None = None,
    returns: Returns = "boolean",
    arrays: Arrays = "numpy",
    cost_us: float | None = None,
    selectivity: float | None = None,
) -> Callable[[Callable[..., Any]], Predicate]: ...
def predicate(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    returns: Returns = "boolean",
    arrays: Arrays = "numpy",
    cost_us: float | None = None,
    selectivity: float | None = None,
) -> Predicate | Callable[[Callable[..., Any]], Predicate]:
    """Register a function as a predicate of this process, under its own name or ``name``; a decorator.

    Every session may call it in SQL from then on. See ``Predicate`` for what it is given and returns.
    Raises ValueError for a name or a value that cannot be.
    """

    def register(function: Callable[..., Any]) -> Predicate:
        made = Predicate(name or function.__name__, function, returns, arrays, cost_us, selectivity)
        PREDICATES[made.name.lower()] = made
        return made

    return register if function is None else register(function)


PREDICATES: dict[str, Predicate] = {}
"""The predicates of this process, by their names in lower case."""


def _built_in(name: str) -> Predicate:
    import_module(f"{__package__}.built_in")
    return PREDICATES[name]
