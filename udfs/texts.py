"""Predicates over texts, by RapidFuzz."""

from typing import Any

import numpy as np
import numpy.typing as npt

from wjoin.udfs.predicate import predicate

Texts = npt.NDArray[np.object_]


@predicate(returns="double", cost_us=0.5)
def edit_distance(left: Texts, right: Texts) -> npt.NDArray[np.float64]:
    """The characters to insert, delete or replace to make one text of the other (Levenshtein)."""
    from rapidfuzz.distance import Levenshtein

    return _each(Levenshtein.distance, left, right)


@predicate(returns="double", cost_us=5)
def token_ratio(left: Texts, right: Texts) -> npt.NDArray[np.float64]:
    """How alike the words of two texts are, from 0 to 1, whatever their order and repetitions."""
    from rapidfuzz.fuzz import token_ratio

    return _each(token_ratio, left, right) / 100


def _each(scorer: Any, left: Texts, right: Texts) -> npt.NDArray[np.float64]:
    from rapidfuzz.process import cpdist

    return np.asarray(cpdist(left, right, scorer=scorer, dtype=np.float64, workers=1))
