"""The queries that a session has started by INSERT INTO, and their checkpoint folders."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

from wjoin.queries.running import Running


def free(name: str, taken: Callable[[str], bool], mark: str = "_") -> str:
    """Return a name, with ``mark`` and a number behind it where it is ``taken`` without one."""
    numbered = (f"{name}{mark}{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if not taken(each))


class Queries:
    """The started queries of one session, oldest first; ended ones are among them.

    ``left`` are queries that run on from ended sessions of the same user.
    """

    def __init__(self) -> None:
        self.started: list[Running] = []
        self.left: tuple[Running, ...] = ()
        self._folders: dict[str, Running] = {}
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
        folder = f"{directory.rstrip('/')}/{sink}"
        return free(folder, lambda each: each in self._named_by_script or self.runs_on(each), "-")

    def free_name(self, sink: str) -> str:
        """Return a name for a query into a sink: the sink's, with a number where a running query has that."""
        taken = {each.name for each in self.started if each.query.isActive}
        return free(sink, taken.__contains__)

    def named(self, folder: str) -> None:
        """Note the checkpoint folder of a statement, so that a later one of the script takes another."""
        self._named_by_script.add(folder)

    def add(self, running: Running) -> None:
        """Note a query that has just been started."""
        self.started.append(running)
        if running.checkpoint is not None:
            self.named(running.checkpoint)
            self._folders[running.checkpoint] = running

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
