"""Which rows of a stream may be late, and which are."""

from pathlib import Path

import pyarrow as pa

from wjoin.executor.late_rows import LATE, LATE_BY, Suspects, told
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.worker_files import WorkerFiles, stage_folder, worker_folder
from wjoin.parts.kernels.runs import GREATEST, LEAST
from wjoin.planner.plan.physical import ScanColumn, StreamScan

SCAN = StreamScan(
    "A", "n", 10, (), (), (), streaming=True, late_into="lost", late=(ScanColumn("A.v", "string", "v"),)
)


def rows(*times: int | None) -> pa.RecordBatch:
    """Return rows of a scan with these times."""
    columns = {"t1": pa.array(times, pa.int64()), "l1_0": pa.array([f"v{time}" for time in times])}
    return pa.RecordBatch.from_pydict(columns)


def test_rows_before_the_time_are_chosen_and_others_are_not() -> None:
    suspects, batch = Suspects(1, SCAN, None, (0,)), rows(7, None, 5, 6)
    found = suspects.chosen(batch, batch.column("t1"), 7)
    assert found is not None and found.to_pydict() == {"t1": [5, 6], "l1_0": ["v5", "v6"]}
    assert suspects.chosen(batch, batch.column("t1"), 5) is None
    assert suspects.chosen(batch, batch.column("t1"), LEAST) is None


def test_late_rows_tell_how_far_they_are_behind() -> None:
    found = told(1, rows(90, 80, 100), 90)
    assert found is not None
    assert found.to_pydict() == {"l1_0": ["v80"], LATE: [1], LATE_BY: [10]}
    assert told(1, rows(90, 100), 90) is None
    far = told(1, rows(LEAST), GREATEST)
    assert far is not None and far.column(LATE_BY).to_pylist() == [GREATEST]


def test_the_watermark_of_a_state_in_files_is_that_before_the_micro_batch(tmp_path: Path) -> None:
    """Of the stage that tells, and of later ones where these know more."""
    suspects = Suspects(1, SCAN, tmp_path, (1, 2))
    seen = {1: {0: {1: 500}, 1: {1: 50}, 2: {}}, 2: {1: {1: 90}, 2: {1: 120}}}
    for stage in range(3):
        worker_folder(stage_folder(tmp_path, stage), 0).mkdir(parents=True)
    assert suspects.before(tmp_path, 1) == LEAST
    for number, stages in seen.items():
        for stage, known in stages.items():
            files = WorkerFiles(worker_folder(stage_folder(tmp_path, stage), 0), number)
            files.commit(Manifest("plan", 1, 0, known, ((),)).encode())
    assert [suspects.before(tmp_path, number) for number in (1, 2, 3)] == [LEAST, 40, 110]
    assert suspects.before(None, 1) == GREATEST
