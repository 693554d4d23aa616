"""Modules that somebody has planted in the folder where a user starts something are not run."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.shells import options, shell
from tests.tiers import tiers

PLANTED = "import os\nopen(os.path.join({told!r}, __name__.partition('.')[0]), 'w').write(__file__)\n"

NAMES = (
    # What is started by its name, and what that imports first.
    *("wjoin", "wjoin_daemon", "wjoin_warm", "wjoin_tcp", "sitecustomize", "usercustomize"),
    *("pyspark", "py4j", "pandas", "pyarrow", "numpy", "lark", "sqlglot"),
    # Spark looks for data sources in modules whose names begin so.
    "pyspark_planted",
    *("socket", "pickle", "random"),
)
"""Modules of Python itself come before those of a folder unless that is first on the path."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder in which modules have been planted; they tell in the folder ``told`` that they were run."""
    found = tmp_path / "here"
    told = found / "told"
    told.mkdir(parents=True)
    plant(found, told)
    return found


def plant(folder: Path, told: Path) -> None:
    """Plant modules in a folder that leave their names in another."""
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(PLANTED.format(told=str(told)))


VIEWS = "; ".join(
    f"CREATE TEMPORARY VIEW {each} AS SELECT id AS k, timestamp_seconds(id) AS ts FROM range(9)"
    for each in ("a", "b")
)
JOIN = "SELECT count(*) FROM a A, b B WINDOW = 1 SECOND WHERE A.k = B.k"
WRITTEN = "CREATE TABLE t USING parquet AS SELECT 1 AS x"


def by_spark_sql(here: Path) -> str:
    done = shell(here, "spark-sql", *options(), "-e", f"{VIEWS}; {WRITTEN}; {JOIN}; SHOW STREAMS")
    return done.stdout + done.stderr


def by_wjoin_run(here: Path) -> str:
    """Run a script by the command as it is installed."""
    (here / "script.sql").write_text(f"{VIEWS}; {WRITTEN}; {JOIN};")
    command = [Path(sys.executable).with_name("wjoin"), "run", "script.sql", "--set", "wjoin.prepare=off"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


def by_spark_shell(here: Path) -> str:
    """Run statements by Spark's shell for Scala, to which wjoin answers as to the others."""
    statements = (*VIEWS.split("; "), WRITTEN, JOIN)
    lines = [f'spark.sql("""{each}""").show()' for each in (*statements, "SHOW STREAMS")]
    script = here / "script.scala"
    script.write_text("\n".join([*lines, "System.exit(0)"]) + "\n")
    done = shell(here, "spark-shell", *options(), "-i", str(script))
    return done.stdout + done.stderr


def by_wjoin_prepare(here: Path) -> str:
    """Have the embedded Spark's classes kept, and run a join with them."""
    command = [Path(sys.executable).with_name("wjoin"), "prepare"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(here.parent / "cache")}
    done = subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list((here.parent / "cache").rglob("*.jsa"))
    return "9"


@pytest.mark.parametrize(
    "run",
    tiers(
        [by_spark_sql, by_wjoin_run, by_spark_shell, by_wjoin_prepare],
        long=[by_spark_sql],
        thorough=[by_wjoin_run, by_spark_shell, by_wjoin_prepare],
    ),
)
@pytest.mark.timeout(600)
def test_nothing_is_run_of_the_folder_where_a_program_starts(here: Path, run: Callable[[Path], str]):
    said = run(here)
    assert not list((here / "told").iterdir()), sorted(each.name for each in (here / "told").iterdir())
    assert "9" in said.replace("|", " ").split(), said


def test_a_planted_module_runs_where_python_imports_from_the_folder(here: Path):
    subprocess.run([sys.executable, "-c", "import wjoin"], cwd=here, check=True)
    assert [each.name for each in (here / "told").iterdir()] == ["wjoin"]
