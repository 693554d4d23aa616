"""What a user does with tables of Iceberg; prints a line for each part.

Run by test_iceberg.py, with a folder and the settings of Spark.
"""

import sys
from pathlib import Path

import wjoin
from tests.delta.journey import JOIN, ROWS, told
from wjoin import WJoinError

TABLES = JOIN.format("lake.db.a", "lake.db.b")
STREAMS = JOIN.format("sa", "sb")
NAMED = JOIN.replace("{} A", "STREAM lake.db.a WATERMARK ts DELAY OF INTERVAL 1 SECOND AS A").replace(
    "{} B", "STREAM lake.db.b WATERMARK ts DELAY OF INTERVAL 1 SECOND AS B"
)
SKIP = ", 'streaming-skip-overwrite-snapshots' 'true'"


class Journey:
    """A session with two tables of Iceberg, ``lake.db.a`` and ``lake.db.b``."""

    def __init__(self, root: Path, settings: dict[str, str]) -> None:
        fixed = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
        self.checkpoint, self.session = f"{root}/checkpoints", wjoin.connect(**fixed, **settings)
        for name in "ab":
            self.session.sql(f"CREATE TABLE lake.db.{name} USING iceberg AS {ROWS.format(0, 20)}")

    def add(self, first: int, last: int) -> None:
        for name in "ab":
            self.session.sql(f"INSERT INTO lake.db.{name} {ROWS.format(first, last)}")

    def declare(self, options: str = "") -> None:
        for name in "ab":
            self.session.sql(
                f"CREATE OR REPLACE STREAM s{name} USING iceberg OPTIONS (path 'lake.db.{name}'{options}) "
                "WATERMARK ts DELAY OF '1 second'"
            )

    def sink(self, name: str) -> None:
        self.session.sql(f"CREATE TABLE lake.db.{name} (id BIGINT, other BIGINT) USING iceberg")
        self.session.sql(f"CREATE SINK {name} USING iceberg OPTIONS (path 'lake.db.{name}')")

    def insert(self, part: str, name: str, query: str) -> None:
        """Run an INSERT INTO; print how many rows its sink has, how many different ones, and its error."""
        failed = None
        try:
            self.session.run_script(f"INSERT INTO {name} {query}", checkpoint=self.checkpoint)
        except WJoinError as error:
            failed = error
        self.count(part, name, told(failed))

    def count(self, part: str, name: str, end: str) -> None:
        counted = self.session.sql(f"SELECT count(*), count(DISTINCT id, other) FROM lake.db.{name}").first()
        print(part, "|", *(counted or ()), "|", end)

    def over_tables(self) -> None:
        """Tables in, a table out, and MERGE."""
        self.sink("once")
        self.insert("from tables", "once", TABLES)
        self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW pairs AS {TABLES}")
        self.session.sql("CREATE TABLE lake.db.met (id BIGINT, other BIGINT) USING iceberg")
        for _ in range(2):
            self.session.sql(
                "MERGE INTO lake.db.met USING (SELECT DISTINCT id, other FROM pairs) found "
                "ON met.id = found.id AND met.other = found.other WHEN NOT MATCHED THEN INSERT *"
            )
            self.count("merged", "met", "nothing")

    def over_streams(self) -> None:
        """Streams in and out, which go on after an end; then their tables change."""
        self.declare()
        for name in ("out", "named"):
            self.sink(name)
        self.insert("begun", "out", STREAMS)
        self.add(20, 40)
        self.insert("gone on", "out", STREAMS)
        # As after a crash between the commit to the table and that to the checkpoint.
        commits = [path for path in Path(self.checkpoint, "out", "commits").iterdir() if path.name.isdigit()]
        max(commits, key=lambda path: int(path.name)).unlink()
        self.insert("repeated", "out", STREAMS)
        self.insert("nothing new", "out", STREAMS)
        self.insert("in place", "named", NAMED)
        self.session.sql("UPDATE lake.db.a SET k = 0 WHERE id = 3")
        self.add(40, 60)
        self.insert("updated", "out", STREAMS)
        self.declare(SKIP)
        self.insert("skipped", "out", STREAMS)
        self.session.sql("ALTER TABLE lake.db.a ADD COLUMN extra STRING")
        self.session.sql(f"INSERT INTO lake.db.a SELECT *, 'new' FROM ({ROWS.format(60, 80)})")
        self.session.sql(f"INSERT INTO lake.db.b {ROWS.format(60, 80)}")
        self.insert("wider", "out", STREAMS)
        self.session.sql("DROP TABLE lake.db.a")
        self.session.sql(f"CREATE TABLE lake.db.a USING iceberg AS {ROWS.format(0, 100)}")
        self.declare()
        self.insert("replaced", "out", STREAMS)


def main() -> None:
    """Run all parts."""
    journey = Journey(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:]))
    journey.over_tables()
    journey.over_streams()
    journey.session.spark.stop()


if __name__ == "__main__":
    main()
