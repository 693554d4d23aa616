"""The queries that a session has started by INSERT INTO, and their checkpoint folders."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator

from pyspark.sql import SparkSession

from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.dropped import settle, watch
from wjoin.measured.recorder import Recorder
from wjoin.queries.running import Running

_LOOK_SECONDS = 5.0
"""How often what queries report is taken: Spark keeps a hundred reports of each."""


class Queries:
    """The started queries of one session, oldest first; ended ones are among them.

    ``left`` are queries that run on from ended sessions of the same user.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.started: list[Running] = []
        self.left: tuple[Running, ...] = ()
        self._folders: dict[str, Running] = {}
        self._looking: threading.Thread | None = None
        self._recorders: dict[str, Recorder] = {}
        self._named_by_script: set[str] = set()
        self._replaced: Running | None = None

    @property
    def known(self) -> list[Running]:
        """What the statements about queries know: those that were left, and those of the session."""
        return [*self.left, *self.started]

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
            if folder not in self._named_by_script and not self.runs_on(folder):
                return folder
        raise AssertionError("numbers do not end")

    def free_name(self, sink: str) -> str:
        """Return a name for a query into a sink: the sink's, with a number where a running query has that."""
        taken = {each.name for each in self.started if each.query.isActive}
        names = (sink if number == 1 else f"{sink}_{number}" for number in itertools.count(1))
        return next(name for name in names if name not in taken)

    def named(self, folder: str) -> None:
        """Note the checkpoint folder of a statement, so that a later one of the script takes another."""
        self._named_by_script.add(folder)

    def add(self, running: Running) -> None:
        """Note a query that has just been started."""
        self.started.append(running)
        watch(self._spark, running.query)
        if running.checkpoint is not None:
            self.named(running.checkpoint)
            self._folders[running.checkpoint] = running
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self._look, name="wjoin-queries", daemon=True)
            self._looking.start()

    def _look(self) -> None:
        """Take what queries report until none runs."""
        try:
            while active := [each for each in self.started if each.seconds is None]:
                for each in active:
                    each.look()
                time.sleep(_LOOK_SECONDS)
        except UNREACHABLE:
            # Spark has been stopped, and its queries with it.
            return
        except RuntimeError:
            # A client of Spark Connect asks nothing more once the program is at its end.
            if threading.main_thread().is_alive():
                raise

    @contextlib.contextmanager
    def replacing(self, running: Running) -> Iterator[None]:
        """Name folders inside as if a query had ended already."""
        self._replaced = running
        try:
            yield
        finally:
            self._replaced = None

    def runs_on(self, folder: str) -> bool:
        """Return whether a query of this session runs on a checkpoint folder."""
        running = self._folders.get(folder)
        return running is not None and running is not self._replaced and running.query.isActive

    def record(self, folder: str | None, recorder: Recorder | None) -> None:
        """Measure the query that has been started on a checkpoint folder."""
        if folder is not None and recorder is not None:
            self._recorders[folder] = recorder
            recorder.start()

    def settle(self) -> None:
        """Tell what queries have dropped, and wait until what ended ones have measured is kept."""
        settle()
        for folder, recorder in list(self._recorders.items()):
            if not self._folders[folder].query.isActive:
                recorder.settle()
                del self._recorders[folder]
