"""The lists of tests name what there is, and CI runs the core of `make matrix` on the newest Spark, too."""

import runpy

import pytest

from tests.packages import ROOT
from tests.tiers import LONG, THOROUGH


@pytest.mark.parametrize("place", sorted({*LONG, *THOROUGH}))
def test_a_place_is_there(place: str) -> None:
    file, _, test = place.partition("::")
    assert (ROOT / "tests" / file).exists()
    if test:
        assert f"\ndef {test.partition('[')[0]}" in (ROOT / "tests" / file).read_text("utf-8")


def test_the_core_of_the_matrix_is_not_left_to_thorough() -> None:
    core = runpy.run_path(str(ROOT / "scripts" / "matrix.py"))["CORE"]
    assert [each for each in core if each.startswith(THOROUGH) and not each.startswith(LONG)] == []
