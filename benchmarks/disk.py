"""Files below a folder: how many, and how large."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """Number and bytes of files."""

    count: int
    size: int

    def __sub__(self, other: "Files") -> "Files":
        return Files(self.count - other.count, self.size - other.size)


def files_below(folder: Path) -> Files:
    """Count what lies below a folder; what goes while it is being counted is left out."""
    count = size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                size += (Path(root) / name).lstat().st_size
            except FileNotFoundError:
                continue
            count += 1
    return Files(count, size)
