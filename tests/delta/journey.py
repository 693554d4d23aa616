"""What a user does with Delta Lake beside streams into a sink; prints a line for each part.

Run by test_statements.py, with a folder and the settings of Spark.
"""

import sys
from pathlib import Path
from typing import Any

import wjoin
from wjoin import WJoinError

JOIN = "SELECT A.id, B.id AS other FROM {} A, {} B WINDOW (A, B) = 4 SECONDS WHERE A.k = B.k"
ROWS = "SELECT id, id % 4 AS k, timestamp_seconds(id) AS ts FROM range({}, {})"


def told(error: WJoinError | None) -> str:
    """Return what a user is told, in a line."""
    return "nothing" if error is None else f"{error.code} {error.message.splitlines()[0]} | {error.help}"


class Journey:
    """A session with two tables of Delta Lake, ``a`` and ``b``, below a folder."""

    def __init__(self, root: Path, settings: dict[str, str]) -> None:
        fixed = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
        fixed["spark.sql.warehouse.dir"] = str(root / "warehouse")
        self.root, self.session = root, wjoin.connect(**fixed, **settings)
        for name in "ab":
            self.add(name, 0, 20)
            self.declare(name)

    def add(self, name: str, first: int, last: int) -> None:
        rows = self.session.sql(ROWS.format(first, last))
        rows.write.format("delta").mode("append").save(f"{self.root}/{name}")

    def declare(self, name: str, options: str = "") -> None:
        self.session.sql(
            f"CREATE OR REPLACE STREAM s{name} USING delta OPTIONS (path '{self.root}/{name}'{options}) "
            "WATERMARK ts DELAY OF '1 second'"
        )

    def sink(self, name: str, options: str = "") -> None:
        self.session.sql(
            f"CREATE OR REPLACE SINK {name} USING delta OPTIONS (path '{self.root}/{name}'{options})"
        )

    def insert(self, name: str, query: str) -> None:
        self.session.run_script(f"INSERT INTO {name} {query}", checkpoint=f"{self.root}/checkpoints")

    def start(self, name: str, query: str) -> list[Any]:
        statement, checkpoint = f"INSERT INTO {name} {query}", f"{self.root}/checkpoints"
        return self.session.run_script(statement, once=False, checkpoint=checkpoint)

    def count(self, name: str) -> str:
        rows = self.session.read.format("delta").load(f"{self.root}/{name}")
        return f"{rows.count()} {rows.distinct().count()}"

    def refused(self, name: str, query: str) -> str:
        try:
            self.insert(name, query)
        except WJoinError as error:
            return told(error)
        return told(None)

    def once_from_tables(self) -> None:
        """A batch with an identity is appended once, however often the script runs."""
        for version in (1, 1, 2):
            self.sink("once", f", txnAppId 'nightly', txnVersion '{version}'")
            self.insert("once", JOIN.format(f"delta.`{self.root}/a`", f"delta.`{self.root}/b`"))
            print("once", version, self.count("once"))

    def merged(self) -> None:
        """The result of a join over tables is merged, again, and again after its tables have more rows."""
        session = self.session
        session.sql("CREATE TABLE met (id BIGINT, other BIGINT, times INT) USING delta")
        join = JOIN.format(f"delta.`{self.root}/a`", f"delta.`{self.root}/b`")
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW pairs AS {join}")
        for more in (False, False, True):
            if more:
                self.add("a", 40, 44)
            session.sql(
                "MERGE INTO met "
                "USING (SELECT id, other, count(*) AS times FROM pairs GROUP BY id, other) found "
                "ON met.id = found.id AND met.other = found.other "
                "WHEN MATCHED AND met.times <> found.times THEN UPDATE SET times = found.times "
                "WHEN NOT MATCHED THEN INSERT *"
            )
            print("merged", *session.sql("SELECT count(*), count(DISTINCT id, other) FROM met").first())

    def counted(self) -> None:
        """A MERGE that adds is done once for each identity."""
        session = self.session
        session.sql("CREATE TABLE seen (id BIGINT, times BIGINT) USING delta")
        for version in (1, 1, 2):
            session.sql("SET spark.databricks.delta.write.txnAppId = nightly")
            session.sql(f"SET spark.databricks.delta.write.txnVersion = {version}")
            session.sql(
                "MERGE INTO seen USING (SELECT id, count(*) AS times FROM pairs GROUP BY id) found "
                "ON seen.id = found.id WHEN MATCHED THEN UPDATE SET times = seen.times + found.times "
                "WHEN NOT MATCHED THEN INSERT *"
            )
            print("counted", *session.sql("SELECT count(*), sum(times) FROM seen").first())
        for name in ("txnAppId", "txnVersion"):
            session.sql(f"RESET spark.databricks.delta.write.{name}")

    def named_table(self) -> None:
        """A table by its name as a stream in place."""
        self.session.sql(f"CREATE TABLE named USING delta LOCATION '{self.root}/a'")
        stream = "STREAM named WATERMARK ts DELAY OF INTERVAL 1 SECOND AS"
        self.sink("by_name")
        self.insert("by_name", JOIN.replace("{} A", f"{stream} A").replace("{} B", f"{stream} B"))
        print("named", self.count("by_name"))

    def goes_on(self) -> None:
        """A query without results at first, stopped and started again; then its sink is gone."""
        self.sink("out")
        later = JOIN.format("sa", "sb") + " AND A.id >= 20"
        self.insert("out", later)
        print("empty", self.count("out"))
        for name in "ab":
            self.add(name, 20, 40)
        self.insert("out", later)
        print("more", self.count("out"))
        (self.root / "out").rename(self.root / "kept")
        print("gone", self.refused("out", later).replace(str(self.root), ""))
        (self.root / "kept").rename(self.root / "out")


def main() -> None:
    """Run all parts."""
    journey = Journey(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:]))
    journey.once_from_tables()
    journey.named_table()
    journey.goes_on()
    journey.merged()
    journey.counted()
    journey.session.spark.stop()


if __name__ == "__main__":
    main()
