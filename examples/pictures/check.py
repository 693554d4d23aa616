"""What cameras.sql must find: frames inside the windows compared in NumPy, and the places that they show."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from frames import CAMERAS, SIZE, Pixels
from pyarrow import parquet

# Those of cameras.sql.
WINDOW = 5_000_000
ALIKE = 0.88
CONTRAST = 25

Combination = tuple[int, int, int]
"""The numbers of a frame of each camera."""


@dataclass(frozen=True)
class Frame:
    """A frame, its event time in microseconds, and the place that it shows."""

    number: int
    time: int
    pixels: Pixels
    place: int

    def similarity(self, other: "Frame") -> float:
        """Return one minus the mean difference of the two frames' bytes, as a share of 255."""
        difference = np.abs(self.pixels.astype(np.int16) - other.pixels)
        return 1 - float(difference.mean()) / 255


class Seen:
    """A camera's frames that have enough contrast, in the order of their times."""

    def __init__(self, folder: Path, camera: str) -> None:
        rows = parquet.read_table(folder / "data" / camera)
        rows = rows.filter(pc.greater(rows["contrast"], CONTRAST)).sort_by("ts")
        truth = parquet.read_table(folder / "truth" / f"{camera}.parquet")
        place = dict(zip(truth["id"].to_pylist(), truth["place"].to_pylist(), strict=True))
        self.times: npt.NDArray[np.int64] = rows["ts"].cast(pa.int64()).to_numpy()
        columns = (rows["id"].to_pylist(), self.times.tolist(), rows["frame"].to_pylist())
        self.frames = [
            Frame(number, time, np.frombuffer(pixels, np.uint8).reshape(SIZE, SIZE, 3), place[number])
            for number, time, pixels in zip(*columns, strict=True)
        ]

    def near(self, frame: Frame) -> list[Frame]:
        """Return the frames inside the window of another camera's one."""
        first = np.searchsorted(self.times, frame.time - WINDOW, "left")
        return self.frames[first : np.searchsorted(self.times, frame.time + WINDOW, "right")]


class Check:
    """The frames that frames.py has written into a folder, and the combinations that there are of them."""

    def __init__(self, folder: Path) -> None:
        self.seen = [Seen(folder, camera) for camera in CAMERAS]

    @cached_property
    def alike(self) -> list[Combination]:
        """The combinations that the statement must find, in order."""
        return sorted(self._combined(lambda one, other: one.similarity(other) > ALIKE))

    @cached_property
    def one_place(self) -> list[Combination]:
        """The combinations inside the windows that show one place, in order."""
        return sorted(self._combined(lambda one, other: one.place == other.place))

    def frames(self, combination: Combination) -> list[Frame]:
        """Return the frames that have these numbers."""
        return [
            next(frame for frame in seen.frames if frame.number == number)
            for seen, number in zip(self.seen, combination, strict=True)
        ]

    def _combined(self, linked: Callable[[Frame, Frame], bool]) -> Iterator[Combination]:
        one, two, three = self.seen
        for frame in two.frames:
            before = [each.number for each in one.near(frame) if linked(each, frame)]
            after = [each.number for each in three.near(frame) if before and linked(frame, each)]
            yield from itertools.product(before, [frame.number], after)
