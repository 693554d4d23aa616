"""A cache of state slices on the machine that runs a worker.

Slices never change and their names are never used twice, so a cached file is either the slice
or absent: a slice that was written by an attempt that failed is never asked for. Reading maps
the file into memory, so a micro-batch loads only the pages that it touches.
"""

import contextlib
import os
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles


class SliceCache:
    """Files of one folder, which Spark removes when its application ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_this_process(cls) -> "SliceCache":
        """Return the cache of the Spark application that this Python worker serves."""
        return cls(Path(SparkFiles.getRootDirectory()) / "wjoin-slices")

    def get(self, name: str) -> pa.Buffer | None:
        """Return a slice as a memory-mapped buffer, None when it is not here."""
        try:
            with pa.memory_map(str(self._folder / name)) as mapped:
                return mapped.read_buffer()
        except FileNotFoundError:
            return None

    def put(self, name: str, data: pa.Buffer) -> None:
        """Keep a slice; it appears whole or not at all."""
        unfinished = self._folder / f"{name}.{os.getpid()}"
        with unfinished.open("wb") as file:
            file.write(data)
        unfinished.replace(self._folder / name)

    def remove(self, name: str) -> None:
        """Drop a slice; one that was never here is no error, another machine may hold it."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / name).unlink()
