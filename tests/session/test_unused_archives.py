"""Archives of classes are removed once no Spark starts from them any more."""

import os
import time
from pathlib import Path

import pytest

from wjoin.spark.class_archive import archive_name, reading_options, remove_unused

TWO_MONTHS = 60 * 86_400


def test_what_has_not_been_used_for_a_month_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "wjoin"
    folder.mkdir()
    used, new, old = (folder / f"{name}-3.jsa" for name in (archive_name(), "classes-new", "classes-old"))
    other = folder / "notes"
    for file in (used, new, old, other):
        file.write_bytes(b"jsa")
    for file in (used, old, other):
        os.utime(file, (time.time() - TWO_MONTHS,) * 2)
    assert str(used) in reading_options()
    remove_unused()
    assert set(folder.iterdir()) == {used, new, other}
