"""Hash route: the key code chooses the worker that stores a row and that it probes."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Codes, Route, RowSlices, Share, by_worker

BUCKETS = 1024
"""Buckets of key codes. A number of 64 bits is too long for a statistic; its bucket is not."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class HashRoute(Route):
    """The rows of a key meet on one worker."""

    name = "hash"
    meaning = "all rows of a key go to one worker"
    meant_for = "streams with an equality between them"

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Without a key there is nothing to hash."""
        return keyed

    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield for each worker the rows of its keys."""
        if codes is None:
            raise ValueError("the route hash needs key codes")
        if workers == 1:
            yield Share(0, None)
            return
        for worker, rows in by_worker(worker_numbers(codes, workers), workers):
            yield Share(worker, rows)


def bucket_numbers(codes: Int64Array) -> npt.NDArray[np.uint64]:
    """Return the number of the bucket, 0 to ``BUCKETS`` - 1, of each key code (int64)."""
    # Of other bits than the worker: the keys of a bucket are those of all workers.
    return _mixed(codes) * np.uint64(BUCKETS) >> np.uint64(32)


def worker_numbers(codes: Int64Array, workers: int) -> npt.NDArray[np.uint32]:
    """Return the number of the worker, 0 to ``workers`` - 1, of each key code (int64)."""
    return _mixed(codes).astype(np.uint32) % np.uint32(workers)


def _mixed(codes: Int64Array) -> npt.NDArray[np.uint64]:
    return (codes.view(np.uint64) * _MULTIPLIER) >> np.uint64(32)
