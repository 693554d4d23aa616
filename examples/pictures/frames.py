"""Frames of three cameras that look at places of one photograph, as streams of Parquet files.

The photograph is that of Commodore Grace Hopper, by the U.S. Navy and in the public domain, which matplotlib
brings along. A scene is a place of it. Each camera sees a scene at another moment, a pixel to the side,
brighter or darker, with noise, and packs it as JPEG; some scenes are seen by one camera only.
"""

import argparse
import io
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib import cbook
from PIL import Image
from pyarrow import parquet

SIZE = 96
"""Pixels of a place on each side."""

RATE = 2.0
"""Scenes a second, unless told otherwise."""

DELAY = 4.5
"""Seconds that a frame may take to arrive: within the delay that the streams declare."""

_ROWS_A_FILE = 100
_BEGIN = int(datetime(2024, 5, 1, 12, tzinfo=UTC).timestamp())

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Camera:
    """What a camera does to a scene, and how many seconds after its beginning it looks (from, to)."""

    gain: float
    noise: float
    quality: int
    shift: int
    looks: tuple[float, float]

    def see(self, photograph: Pixels, place: tuple[int, int], random: np.random.Generator) -> Pixels:
        """Return the frame of a place."""
        top, left = np.add(place, random.integers(-self.shift, self.shift + 1, 2))
        light = photograph[top : top + SIZE, left : left + SIZE] * self.gain
        light += random.normal(0, self.noise, light.shape)
        packed = io.BytesIO()
        Image.fromarray(np.clip(light, 0, 255).astype(np.uint8)).save(packed, "JPEG", quality=self.quality)
        return np.asarray(Image.open(packed))


CAMERAS = {
    "camera1": Camera(gain=1.0, noise=2, quality=90, shift=0, looks=(0, 1)),
    "camera2": Camera(gain=1.05, noise=4, quality=70, shift=1, looks=(1.5, 3.5)),
    "camera3": Camera(gain=0.95, noise=5, quality=50, shift=1, looks=(3, 6)),
}


def photograph() -> Pixels:
    """Return the photograph: 600 lines of 512 pixels of red, green and blue."""
    with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as image:
        return np.asarray(image.convert("RGB"))


def places(of: Pixels) -> list[tuple[int, int]]:
    """Return the upper left corners of all places; none overlap, and a camera may look past an edge."""
    lines, columns = ((pixels - 2) // SIZE for pixels in of.shape[:2])
    return [(1 + line * SIZE, 1 + column * SIZE) for line in range(lines) for column in range(columns)]


def write_frames(folder: Path, scenes: int, rate: float = RATE, seed: int = 1) -> None:
    """Write the streams into ``data`` below the folder, and what place each frame shows into ``truth``."""
    random = np.random.default_rng(seed)
    picture = photograph()
    corners = places(picture)
    rounds = [random.permutation(len(corners)) for _ in range(scenes // len(corners) + 1)]
    place_of = np.concatenate(rounds)[:scenes]
    # Of ten scenes, seven are seen by all cameras, each of the others by one.
    only = random.choice([None, *CAMERAS], scenes, p=[0.7, 0.1, 0.1, 0.1])
    for name, camera in CAMERAS.items():
        seen = [scene for scene in range(scenes) if only[scene] in (None, name)]
        times = np.array(seen) / rate + random.uniform(*camera.looks, len(seen))
        frames = [camera.see(picture, corners[place_of[scene]], random) for scene in seen]
        # Numbers tell nothing of scenes: those of each camera begin elsewhere, and go by its own times.
        number = np.argsort(np.argsort(times)) + 10_000 * int(name[-1])
        arrival = np.argsort(times + random.uniform(0, DELAY, len(seen)))
        rows = _table(number, times, frames).take(arrival)
        _write(rows, folder / "data" / name)
        (folder / "truth").mkdir(exist_ok=True)
        truth = pa.table({"id": number, "place": place_of[seen]})
        parquet.write_table(truth, folder / "truth" / f"{name}.parquet")


def _table(number: npt.NDArray[np.int64], times: npt.NDArray[np.float64], frames: list[Pixels]) -> pa.Table:
    micros = _BEGIN * 1_000_000 + (times * 1e6).astype(np.int64)
    return pa.table(
        {
            "id": number,
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
            "brightness": [frame.mean() for frame in frames],
            "contrast": [frame.mean(axis=2).std() for frame in frames],
            "frame": [frame.tobytes() for frame in frames],
        }
    )


def _write(rows: pa.Table, folder: Path) -> None:
    folder.mkdir(parents=True)
    files = range(0, len(rows), _ROWS_A_FILE)
    for turn, first in enumerate(files):
        path = folder / f"{turn:04}.parquet"
        parquet.write_table(rows.slice(first, _ROWS_A_FILE), path)
        # Spark's file source takes the oldest file first.
        os.utime(path, (0, path.stat().st_mtime - len(files) + turn))


def main() -> None:
    """Write frames beside this file, or into a folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    parser.add_argument("--scenes", type=int, default=400)
    given = parser.parse_args()
    if (given.folder / "data").exists():
        sys.exit(f"{given.folder / 'data'} is there already: remove it first")
    write_frames(given.folder, given.scenes)


if __name__ == "__main__":
    main()
