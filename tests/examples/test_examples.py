"""The scripts in examples/ run, and print what stands beside them."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.packages import ROOT
from tests.programs import run_python
from tests.tiers import tiers

EXAMPLES = sorted((ROOT / "examples").glob("*.sql"))
STREAMS = ROOT / "examples" / "12_streams.sql"


@pytest.mark.parametrize("script", tiers(EXAMPLES, quick=EXAMPLES[:9:8]), ids=lambda path: path.stem)
@pytest.mark.long
def test_example_prints_what_it_should(
    session: wjoin.Session, script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script.read_text("utf-8")
    # Spark's working directory is fixed, so the paths move instead.
    text = re.sub(r"(['`])(data|out)/", rf"\1{tmp_path}/\2/", text)
    capsys.readouterr()
    for made in session.run_script(text, checkpoint=str(tmp_path / "checkpoints")):
        if isinstance(made, DataFrame) and made.columns:
            made.show(truncate=False)
    assert capsys.readouterr().out == script.with_suffix(".out").read_text("utf-8")


@pytest.mark.thorough
@pytest.mark.spark
def test_command_line_prints_the_same(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = Path(shutil.copy(STREAMS, tmp_path / "scripts"))
    options = ["--once", "--checkpoint", "checkpoints"]
    done = run_python(tmp_path, "-m", "wjoin.cli", "run", f"scripts/{script.name}", *options)
    report, _, rows = done.stdout.partition("\n")
    assert (done.returncode, rows) == (0, STREAMS.with_suffix(".out").read_text("utf-8")), done.stderr
    assert report.startswith("tracked: 210 rows in (A 100, B 100, C 10), ")
    # What the script names lies beside it, what the command line names where it was called.
    assert {each.name for each in script.parent.iterdir()} == {script.name, "data", "out"}
    assert (tmp_path / "checkpoints" / "tracked" / "commits").is_dir()
