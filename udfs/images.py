"""Predicates over images."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.udfs.predicate import predicate


@predicate(returns="double", arrays="arrow", cost_us=50)
def rgb_similarity(left: pa.Array, right: pa.Array) -> npt.NDArray[np.float64]:
    """How alike two images are, pixel by pixel: 1 for the same, 0 for black and white, or other sizes.

    Both are bytes of red, green and blue. One minus the mean difference of a byte, as a share of 255
    (PSP 2009, section 8.1: the RGB values of every pixel are compared).
    """
    pairs = zip(left, right, strict=True)
    return np.array([_alike(_bytes(one), _bytes(other)) for one, other in pairs], np.float64)


def _bytes(image: pa.Scalar) -> npt.NDArray[np.uint8]:
    return np.frombuffer(image.as_buffer(), np.uint8)


def _alike(left: npt.NDArray[np.uint8], right: npt.NDArray[np.uint8]) -> float:
    if len(left) != len(right):
        return 0.0
    if not len(left):
        return 1.0
    # In bytes, which are read fastest: the larger less the smaller one has no sign.
    difference = np.maximum(left, right) - np.minimum(left, right)
    return 1.0 - float(difference.sum(dtype=np.int64)) / (255 * len(left))
