"""``wjoin prepare``: let the embedded Spark of this machine start sooner."""

import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from wjoin.connecting import connect
from wjoin.grammar.errors import WJoinError
from wjoin.spark.class_archive import SUFFIX, archive_folder, archive_name, remove_unused, writing_options
from wjoin.spark.embedded import JAVA_OPTIONS, JAVA_SETTING
from wjoin.spark.preparing import SETTING, begun_file

_ENDING_SECONDS = 300

_SCRIPT = """
INSERT OVERWRITE DIRECTORY 'a' USING parquet
  SELECT id AS k, timestamp_seconds(1700000000 + id) AS ts FROM range(9);
INSERT OVERWRITE DIRECTORY 'b' USING json
  SELECT id AS k, timestamp_seconds(1700000000 + id) AS ts FROM range(9);
CREATE OR REPLACE STREAM a (k BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path 'a')
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE OR REPLACE STREAM b (k BIGINT, ts TIMESTAMP) USING json OPTIONS (path 'b')
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
CREATE OR REPLACE SINK c USING parquet OPTIONS (path 'c');
INSERT INTO c SELECT a.k, a.ts, b.ts AS other FROM a, b WINDOW = 5 SECONDS WHERE a.k = b.k;
"""
_RESULTS = "SELECT k, count(*) AS results FROM parquet.c GROUP BY k ORDER BY k"
"""What most scripts do, small: Spark has then read nearly all that they need."""


def prepare(settings: Mapping[str, str]) -> Path:
    """Run a small join with some settings, and have its Java keep the classes that it reads; return the file.

    Takes about a minute, and 200 MB of disk. The files of other Javas and Sparks stay
    while they are used. Raises WJoinError WJ614 where Java writes no file.
    """
    name = archive_name()
    if name is None:
        raise WJoinError("WJ614", "no Java was found", help="install Java, or set JAVA_HOME")
    folder = archive_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="unfinished-", dir=folder) as scratch:
        unfinished = Path(scratch, f"{name}{SUFFIX}")
        options = f"{JAVA_OPTIONS} {writing_options(unfinished)}"
        with contextlib.chdir(scratch):
            session = connect(None, **{**settings, JAVA_SETTING: options, SETTING: "off"})
            session.run_script(_SCRIPT, checkpoint="checkpoints")
            session.sql(_RESULTS).collect()
            session.spark.stop()
        _end_java()
        if not unfinished.exists():
            raise WJoinError("WJ614", f"Java has not written {unfinished}", help="see the log with --debug")
        file = folder / f"{name}-{unfinished.stat().st_size}{SUFFIX}"
        for earlier in folder.glob(f"{name}-*{SUFFIX}"):
            earlier.unlink()
        remove_unused()
        begun_file(name).unlink(missing_ok=True)
        # Whoever starts meanwhile has the whole file, or none.
        return unfinished.rename(file)


def _end_java() -> None:
    """Have the Java of this process end, as it does with the process, and wait for it."""
    java: Any = SparkContext._gateway
    java.proc.stdin.close()
    java.proc.wait(_ENDING_SECONDS)
