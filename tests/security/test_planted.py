"""Modules that somebody has planted in the folder where a user starts a shell are not run."""

from pathlib import Path

import pytest

from tests.compat.shells import options, shell

PLANTED = "import pathlib\npathlib.Path({told!r}).write_text(__file__)\nraise SystemExit('planted')\n"


@pytest.mark.parametrize("name", ["wjoin", "pandas"])
def test_spark_sql_runs_nothing_of_the_folder_where_it_starts(tmp_path: Path, name: str):
    here, told = tmp_path / "here", tmp_path / "told"
    (here / name).mkdir(parents=True)
    (here / name / "__init__.py").write_text(PLANTED.format(told=str(told)))
    views = "; ".join(
        f"CREATE TEMPORARY VIEW {each} AS SELECT id AS k, timestamp_seconds(id) AS ts FROM range(9)"
        for each in ("a", "b")
    )
    join = "SELECT count(*) FROM a A, b B WINDOW = 1 SECOND WHERE A.k = B.k"
    done = shell(here, "spark-sql", *options(), "-e", f"{views}; {join}; SHOW STREAMS")
    assert not told.exists(), told.read_text()
    assert "9" in done.stdout.split(), done.stderr
