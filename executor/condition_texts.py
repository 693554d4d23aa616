"""The strings of a condition, as ranks among all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.pair_values import Vector
from wjoin.planner.conditions.expressions import Call, Constant, Expression, Input


def is_text(column: pa.Array) -> bool:
    """Return whether a column has strings."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


_MATCHES = {
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
    "like": pc.match_like,
}


def with_matches(expression: Expression, columns: list[pa.Array], sources: list[int]) -> Expression:
    """Return an expression with patterns looked for in whole columns, which become further columns."""
    match expression:
        case Call(name, (Input(place, _), Constant(pattern, _))) if name in _MATCHES:
            columns.append(_MATCHES[name](columns[place], pattern))
            sources.append(place)
            return Input(len(columns) - 1, "boolean")
        case Call():
            arguments = tuple(with_matches(each, columns, sources) for each in expression.arguments)
            return replace(expression, arguments=arguments)
    return expression


@dataclass(frozen=True)
class Texts:
    """All strings of a condition, each once, and their ranks by their bytes."""

    values: pa.Array
    ranks: npt.NDArray[np.int64]

    @classmethod
    def of(cls, expression: Expression, columns: Sequence[pa.Array]) -> "Texts | None":
        """Return those of an expression over columns, None where it has none."""
        texts = [column for column in columns if is_text(column)]
        if not texts:
            return None
        own = {
            each.value
            for each in leaves(expression)
            if isinstance(each, Constant) and isinstance(each.value, str)
        }
        constants = pa.array(sorted(own), pa.large_string())
        both = [*(each.unique().cast(pa.large_string()) for each in texts), constants]
        values = pa.concat_arrays(both).unique().drop_null()
        order = np.asarray(pc.sort_indices(values)).astype(np.int64)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return cls(values, ranks)

    def _places(self, texts: pa.Array) -> pa.Array:
        return pc.index_in(texts.cast(pa.large_string()), value_set=self.values)

    def vector(self, column: pa.Array) -> Vector:
        """Return the ranks of a column's strings."""
        places = self._places(column)
        null = np.asarray(places.is_null()) if places.null_count else None
        if not len(self.ranks):
            return Vector(np.zeros(len(column), np.int64), 0, 0, null)
        return Vector(self.ranks[np.asarray(pc.fill_null(places, 0))], 0, len(self.ranks), null)

    def ranked(self, expression: Expression) -> Expression:
        """Return an expression with ranks in the place of constant strings."""
        match expression:
            case Constant(str() as text, "string"):
                place = self._places(pa.array([text]))[0].as_py()
                return Constant(int(self.ranks[place]), "string")
            case Call():
                return replace(expression, arguments=tuple(map(self.ranked, expression.arguments)))
        return expression


def leaves(expression: Expression) -> Iterator[Input | Constant]:
    """Yield the inputs and constants of an expression."""
    if isinstance(expression, Call):
        for each in expression.arguments:
            yield from leaves(each)
    else:
        yield expression
