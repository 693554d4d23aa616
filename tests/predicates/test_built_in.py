"""The predicates that wjoin brings, against definitions one pair at a time."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.pair_calls import scores
from wjoin.udfs.built_in import known_predicates

KNOWN = known_predicates()
NUMBERS = st.floats(-100, 100, allow_nan=False).map(lambda value: round(value, 3))
VECTORS = st.none() | st.lists(st.none() | NUMBERS, max_size=3)
SETS = st.none() | st.lists(st.none() | st.integers(0, 3), max_size=5)
IMAGES = st.none() | st.binary(max_size=3) | st.binary(min_size=6, max_size=6)
TEXTS = st.none() | st.text("ab ", max_size=6)


def said(name: str, kind: pa.DataType, pairs: list[tuple[Any, Any]]) -> list[float | None]:
    left, right = (pa.array([pair[side] for pair in pairs], kind) for side in (0, 1))
    values, null = scores(KNOWN[name], [left, right])
    return [None if unknown else value for value, unknown in zip(values.tolist(), null.tolist(), strict=True)]


def cosine(left: list[float | None], right: list[float | None]) -> float | None:
    if len(left) != len(right) or None in left or None in right:
        return None
    sizes = math.hypot(*left) * math.hypot(*right)
    return None if sizes == 0 else sum(a * b for a, b in zip(left, right, strict=True)) / sizes


def distance(left: list[float | None], right: list[float | None]) -> float | None:
    return None if len(left) != len(right) or None in left or None in right else math.dist(left, right)


def jaccard(left: list[int | None], right: list[int | None]) -> float:
    either = set(left) | set(right)
    return len(set(left) & set(right)) / len(either) if either else 1.0


def alike(left: bytes, right: bytes) -> float:
    if len(left) != len(right):
        return 0.0
    differences = [abs(a - b) / 255 for a, b in zip(left, right, strict=True)]
    return 1 - sum(differences) / len(differences) if differences else 1.0


def levenshtein(left: str, right: str) -> float:
    line = list(range(len(right) + 1))
    for row, one in enumerate(left, start=1):
        before, line[0] = line[0], row
        for place, other in enumerate(right, start=1):
            before, line[place] = (
                line[place],
                min(line[place] + 1, line[place - 1] + 1, before + (one != other)),
            )
    return float(line[-1])


CASES = {
    "cosine_similarity": (pa.list_(pa.float64()), VECTORS, cosine),
    "euclidean_distance": (pa.list_(pa.float64()), VECTORS, distance),
    "jaccard_similarity": (pa.list_(pa.int32()), SETS, jaccard),
    "same_set": (pa.list_(pa.int32()), SETS, lambda left, right: float(set(left) == set(right))),
    "rgb_similarity": (pa.binary(), IMAGES, alike),
    "edit_distance": (pa.string(), TEXTS, levenshtein),
}


@pytest.mark.parametrize("name", CASES)
@given(st.data())
def test_every_pair_is_judged_by_the_definition(name: str, data: st.DataObject) -> None:
    kind, values, definition = CASES[name]
    pairs = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=6))
    expected = [None if None in pair else definition(*pair) for pair in pairs]
    assert said(name, kind, pairs) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["cosine_similarity", "euclidean_distance"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.int64(), pa.decimal128(10, 2)])
def test_vectors_of_any_numbers(name: str, kind: pa.DataType) -> None:
    found = said(name, pa.list_(kind), [([3, 4], [3, 4]), ([3, 4], [0, 5])])
    assert found == pytest.approx({"cosine_similarity": [1, 0.8], "euclidean_distance": [0, 10**0.5]}[name])


def test_places_far_and_near() -> None:
    """Berlin to Paris; the antipodes; one place."""
    places = np.array([[52.52, 13.405], [0, 0], [90, 0]]), np.array([[48.8566, 2.3522], [0, 180], [90, 77]])
    found = KNOWN["haversine_km"](places[0][:, 0], places[0][:, 1], places[1][:, 0], places[1][:, 1])
    assert found == pytest.approx([877.46, math.pi * 6371.0088, 0], abs=0.01)


def test_words_in_another_order_are_alike() -> None:
    pairs = [("new york mets", "mets new york"), ("abc", "xyz"), ("the cat", "the cats")]
    same, other, near = said("token_ratio", pa.string(), pairs)
    assert (same, other) == (1, 0)
    assert near is not None
    assert 0.8 < near < 1
