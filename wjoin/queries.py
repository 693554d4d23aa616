"""The queries that a session has started by INSERT INTO, and their checkpoint folders."""

import itertools

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.measured.dropped import settle, watch
from wjoin.measured.recorder import Recorder


class Queries:
    """The started queries of one session, oldest first; ended ones are among them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.started: list[StreamingQuery] = []
        self._folders: dict[str, StreamingQuery] = {}
        self._recorders: dict[str, Recorder] = {}
        self._named_by_script: set[str] = set()

    def begin_script(self) -> None:
        """Forget which folders an earlier script has named: the next one may name them again."""
        self._named_by_script.clear()

    def name_folder(self, directory: str, sink: str) -> str:
        """Return the checkpoint folder of the next query into a sink.

        It has the name of the sink: with a number where an earlier statement of the same script
        has that name, or a query that still runs.
        """
        for number in itertools.count(1):
            name = sink if number == 1 else f"{sink}-{number}"
            folder = f"{directory.rstrip('/')}/{name}"
            running = self._folders.get(folder)
            if folder not in self._named_by_script and not (running and running.isActive):
                return folder
        raise AssertionError("numbers do not end")

    def named(self, folder: str) -> None:
        """Note the checkpoint folder of a statement, so that a later one of the script takes another."""
        self._named_by_script.add(folder)

    def add(self, query: StreamingQuery, folder: str | None) -> None:
        """Note a query that has just been started, and its checkpoint folder."""
        self.started.append(query)
        watch(self._spark, query)
        if folder is not None:
            self.named(folder)
            self._folders[folder] = query

    def runs_on(self, folder: str) -> bool:
        """Return whether a query of this session runs on a checkpoint folder."""
        query = self._folders.get(folder)
        return query is not None and query.isActive

    def folder_of(self, query: StreamingQuery) -> str | None:
        """Return the checkpoint folder of a query, None where it has none."""
        return next((folder for folder, each in self._folders.items() if each is query), None)

    def record(self, folder: str | None, recorder: Recorder | None) -> None:
        """Measure the query that has been started on a checkpoint folder."""
        if folder is not None and recorder is not None:
            self._recorders[folder] = recorder
            recorder.start()

    def settle(self) -> None:
        """Tell what queries have dropped, and wait until what ended ones have measured is kept."""
        settle()
        for folder, recorder in list(self._recorders.items()):
            if not self._folders[folder].isActive:
                recorder.settle()
                del self._recorders[folder]
