"""An approximate join that is killed loses what it loses undisturbed, and makes no result twice."""

from pathlib import Path

import pytest

from tests.faults.killing import assert_part_as_undisturbed

SETTINGS = ("visits=1", "spark.sql.shuffle.partitions=4")


@pytest.mark.timeout(1800)
@pytest.mark.long
@pytest.mark.parametrize(
    ("home", "counted", "learns"),
    [("row_id", "", False), ("", "", False), ("row_id", "200", False), ("row_id", "", True)],
    ids=["by a column", "by file", "windows of rows", "learning"],
)
def test_an_approximate_join_is_killed_at_random_moments(
    tmp_path: Path, kills: int, home: str, counted: str, learns: bool
) -> None:
    settings = (*SETTINGS, f"home={home}", f"counted={counted}")
    assert_part_as_undisturbed(tmp_path, kills, settings, learns=learns)
