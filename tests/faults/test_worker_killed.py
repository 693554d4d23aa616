"""A worker that dies inside a micro-batch: the query fails, goes on, and has every result once."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.faults.child import KEYED, script
from tests.faults.killing import assert_results, commits, write_streams
from wjoin.udfs.predicate import PREDICATES, predicate


def test_a_worker_dies_inside_a_micro_batch(session: Any, tmp_path: Path) -> None:
    write_streams(tmp_path, 4, 60)
    died, here = tmp_path / "died", os.getpid()

    # With its cost given, it is not tried in this process.
    @predicate(cost_us=1, selectivity=1)
    def deadly(left: Any, right: Any) -> Any:
        # Row 121 is the first one of the third micro-batch.
        if os.getpid() != here and left.max(initial=0) > 120 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return left > 0

    statements = script(tmp_path, None, "parquet").replace("CREATE ", "CREATE OR REPLACE ")
    statements = statements.replace(KEYED, f"{KEYED} AND deadly(A.row_id, C.row_id)")
    try:
        with pytest.raises(Exception, match="exited unexpectedly"):
            session.run_script(statements, once=True, checkpoint=str(tmp_path / "checkpoints"))
        assert died.exists() and commits(tmp_path, "commits") == {0, 1}
        session.run_script(statements, once=True, checkpoint=str(tmp_path / "checkpoints"))
    finally:
        del PREDICATES["deadly"]
    session.spark.read.parquet(str(tmp_path / "tracked")).write.parquet(str(tmp_path / "committed"))
    assert_results(tmp_path, [str(path) for path in (tmp_path / "committed").glob("*.parquet")])
