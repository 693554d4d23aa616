"""The scripts in examples/ run, and print what stands beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.packages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.sql"))
STREAMS = ROOT / "examples" / "12_streams.sql"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
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


@pytest.mark.spark
def test_command_line_prints_the_same(tmp_path: Path) -> None:
    options = ["--once", "--checkpoint", str(tmp_path / "checkpoints")]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "wjoin.cli", "run", str(STREAMS), *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, STREAMS.with_suffix(".out").read_text("utf-8")), done.stderr
