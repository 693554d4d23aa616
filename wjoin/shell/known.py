"""The names that a session knows, as the completion needs them: asked for beside the prompt."""

import contextlib
import re
import threading
from typing import TYPE_CHECKING

from wjoin.shell.completion import Named, Names

if TYPE_CHECKING:
    from wjoin.session import Session

_FUNCTION = re.compile(r"[a-z]\w*\Z", re.IGNORECASE)


_ASKED_SECONDS = 60.0
"""How long a menu waits for the names that are just asked for; typing goes on meanwhile."""


class Known:
    """The names of one session; none until it is there."""

    def __init__(self) -> None:
        self._names = Names()
        self._functions: tuple[Named, ...] = ()
        self._asking: threading.Thread | None = None

    def names(self) -> Names:
        """Return the names after the last statement; for the completion, which has a thread of its own."""
        self.settle(_ASKED_SECONDS)
        return self._names

    def refresh(self, session: "Session") -> None:
        """Ask for the names anew, in a thread."""
        self._asking = threading.Thread(
            target=self._refresh, args=(session,), name="wjoin-names", daemon=True
        )
        self._asking.start()

    def settle(self, seconds: float) -> None:
        """Wait so long at most until nothing is asked for."""
        if self._asking is not None:
            self._asking.join(seconds)

    def _refresh(self, session: "Session") -> None:
        from wjoin.measured.beside import UNREACHABLE

        # Without its names a session works all the same.
        with contextlib.suppress(*UNREACHABLE):
            self._functions = self._functions or _functions(session)
            self._names = names_of(session, self._functions)


def names_of(session: "Session", functions: tuple[Named, ...]) -> Names:
    """Return what a session knows by name now."""
    from wjoin.settings.session import SETTINGS

    catalog = session.declarations
    relations = [
        Named(each.name, "view over streams" if each.source == "view" else "stream")
        for each in catalog.streams.values()
    ]
    for row in session.context.engine.run("SHOW TABLES").collect():
        if row.tableName.lower() not in catalog.streams:
            relations.append(Named(row.tableName, "view" if row.isTemporary else "table"))
    return Names(
        tuple(relations),
        tuple(each.name for each in catalog.sinks.values()),
        tuple(dict.fromkeys(each.name for each in session.running)),
        functions,
        SETTINGS,
        _Columns(session),
    )


def _functions(session: "Session") -> tuple[Named, ...]:
    from wjoin.udfs.built_in import known_predicates

    spark = [row[0] for row in session.context.engine.run("SHOW FUNCTIONS").collect()]
    names = {*known_predicates(), *(name for name in spark if _FUNCTION.match(name))}
    return tuple(Named(f"{name}(", "function") for name in sorted(names))


class _Columns:
    """The columns of relations, each asked for once."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._found: dict[str, tuple[Named, ...]] = {}

    def __call__(self, relation: str) -> tuple[Named, ...]:
        from wjoin.measured.beside import UNREACHABLE

        key = relation.lower()
        if key not in self._found:
            columns: tuple[Named, ...] = ()
            with contextlib.suppress(*UNREACHABLE):
                fields = self._session.spark.table(relation).schema.fields
                columns = tuple(Named(each.name, each.dataType.simpleString()) for each in fields)
            self._found[key] = columns
        return self._found[key]
