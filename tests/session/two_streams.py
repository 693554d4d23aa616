"""Two streams of the same ten rows, a quarter of a second apart, for tests of a session."""

from pathlib import Path

import wjoin
from tests.session.test_computed_columns import write_json


def declare_two_streams(session: wjoin.Session, folder: Path) -> None:
    """Declare the streams a and b over files of JSON below a folder."""
    for name, late in (("a", 0), ("b", 250)):
        rows = [{"id": number, "ms": 1_700_000_000_000 + 1000 * number + late} for number in range(10)]
        files = write_json(folder / name, rows)
        session.sql(
            f"CREATE STREAM {name} (id BIGINT, ts AS timestamp_millis(ms), ms BIGINT) USING json "
            f"OPTIONS (path '{files}') WATERMARK ts DELAY OF '1 minute'"
        )
