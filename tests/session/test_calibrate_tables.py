"""The part of `wjoin calibrate` about tables: its jobs do what they are said to do."""

from pathlib import Path

import pytest

import wjoin
from wjoin.commands.calibrate_tables import Job, job_seconds, prepared
from wjoin.planner.plan.physical import Method

pytestmark = pytest.mark.long

SPAN = 1_000_000_000


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize(
    ("job", "results"),
    [
        (Job(60, keys=6, window=SPAN), 600),
        (Job(60, keys=6), 0),
        (Job(60, window=SPAN), 0),
        (Job(60, keys=6, window=SPAN, tables=3), 6000),
    ],
)
def test_a_job_finds_what_it_says(
    session: wjoin.Session, tmp_path: Path, method: Method, job: Job, results: int
) -> None:
    statement = prepared(session, method, job, tmp_path)
    assert ("plan native" in session.explain(statement)) == (method is Method.NATIVE)
    assert session.sql(statement).count() == results
    assert job.pairs == (600 if job.keys else 0)


@pytest.mark.long
@pytest.mark.quick
def test_a_job_takes_time(session: wjoin.Session) -> None:
    assert job_seconds(session, Method.NATIVE, Job(10)) > 0
