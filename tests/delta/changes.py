"""Queries over tables of Delta Lake that change otherwise than by new rows; prints a line for each.

Run by test_changes.py, with a folder and the settings of Spark.
"""

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from tests.delta.journey import JOIN, Journey, told

QUERY = JOIN.format("sa", "sb")


class Changes:
    """Two tables of 20 rows for each case, which a query has joined; then one is changed."""

    def __init__(self, journey: Journey) -> None:
        self.journey = journey
        self.table = f"delta.`{journey.root}/a`"

    def declare(self, options: str = "") -> None:
        for name in "ab":
            self.journey.declare(name, options)

    def begin(self) -> None:
        for name in "ab":
            shutil.rmtree(self.journey.root / name, ignore_errors=True)
            self.journey.add(name, 0, 20)
        self.declare()

    def more(self) -> None:
        for name in "ab":
            self.journey.add(name, 20, 40)

    def update(self) -> None:
        self.journey.session.sql(f"UPDATE {self.table} SET k = 0 WHERE id = 3")
        self.more()

    def add_column(self) -> None:
        self.journey.session.sql(f"ALTER TABLE {self.table} ADD COLUMN extra STRING")
        self.more()

    def replace(self) -> None:
        """Another table at the same path."""
        shutil.rmtree(self.journey.root / "a")
        self.journey.add("a", 0, 40)
        self.journey.declare("a")

    def forget(self) -> None:
        """Lose the part of the log that the query has not read, as after the time that it is kept."""
        for first in (20, 25, 30, 35):
            self.journey.add("a", first, first + 5)
        DeltaTable(self.journey.root / "a").create_checkpoint()
        for path in (self.journey.root / "a" / "_delta_log").glob("*0[0-2].json"):
            path.unlink()

    def after(self, name: str, change: Callable[[], None], remedy: str | None = None) -> None:
        """Change a table between two runs of a query; then declare its streams with a remedy's options."""
        self.begin()
        self.journey.sink(name)
        self.journey.insert(name, QUERY)
        change()
        failed = self.journey.refused(name, QUERY)
        print(f"{name} | {self.journey.count(name)} | {failed}")
        if remedy is not None:
            self.declare(remedy)
            self.journey.insert(name, QUERY)
            print(f"{name} again | {self.journey.count(name)}")

    def below(self, name: str, change: Callable[[], None]) -> None:
        """Change a table below a query that runs."""
        self.begin()
        self.journey.sink(name)
        (query,) = self.journey.start(name, QUERY)
        (running,) = [each for each in self.journey.session.running if each.query is query]
        query.processAllAvailable()
        change()
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination(60)
        print(f"{name} | {self.journey.count(name)} | {told(running.failed)}")


def main() -> None:
    """Run all cases."""
    changes = Changes(Journey(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:])))
    changes.after("updated", changes.update, ", skipChangeCommits 'true'")
    changes.after("wider", changes.add_column, "")
    changes.after("replaced", changes.replace)
    changes.after("forgotten", changes.forget)
    changes.below("running", changes.update)
    changes.journey.session.spark.stop()


if __name__ == "__main__":
    main()
