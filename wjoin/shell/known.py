"""The names that a session knows, as the completion needs them: asked for when something is completed."""

import contextlib
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from wjoin.shell.completion import Named, Names

if TYPE_CHECKING:
    from wjoin.session import Session

_FUNCTION = re.compile(r"[a-z]\w*\Z", re.IGNORECASE)


class KnownNames:
    """The names of one session after its last statement; none until it is there."""

    def __init__(self) -> None:
        self._names: Callable[[], Names] = Names

    def names(self) -> Names:
        """Return the names; for the completion, which has a thread of its own in which to ask Spark."""
        return self._names()

    def refresh(self, session: "Session") -> None:
        """Forget the names: they may have changed."""

        def asked() -> Names:
            from wjoin.measured.beside import UNREACHABLE

            # Without its names a session works all the same.
            with contextlib.suppress(*UNREACHABLE):
                return names_of(session)
            return Names()

        self._names = cache(asked)

    def forget(self) -> None:
        """Know nothing any more: Spark is being stopped."""
        self._names = Names


def names_of(session: "Session") -> Names:
    """Return what a session knows by name now."""
    from wjoin.settings.settable import SETTINGS

    queries = [Named(each.name, "query") for each in session.running]
    settings = (Named(each, "setting") for each in SETTINGS)

    @cache
    def columns(relation: str) -> tuple[Named, ...]:
        from wjoin.measured.beside import UNREACHABLE

        with contextlib.suppress(*UNREACHABLE):
            fields = session.spark.table(relation).schema.fields
            return tuple(Named(each.name, each.dataType.simpleString()) for each in fields)
        return ()

    targets = (*sinks_of(session), *queries)
    return Names(relations_of(session), targets, (*_functions(session), *settings), columns)


def relations_of(session: "Session") -> tuple[Named, ...]:
    """Return the streams, views and tables of a session."""
    streams = session.declarations.streams
    found = [
        Named(each.name, "view over streams" if each.source == "view" else "stream")
        for each in streams.values()
    ]
    for row in session.context.engine.run("SHOW TABLES").collect():
        if row.tableName.lower() not in streams:
            found.append(Named(row.tableName, "view" if row.isTemporary else "table"))
    return tuple(found)


def sinks_of(session: "Session") -> tuple[Named, ...]:
    """Return the sinks of a session."""
    return tuple(Named(each.name, "sink") for each in session.declarations.sinks.values())


@cache
def _functions(session: "Session") -> tuple[Named, ...]:
    from wjoin.udfs.built_in import known_predicates

    spark = [row[0] for row in session.context.engine.run("SHOW FUNCTIONS").collect()]
    names = {*known_predicates(), *(name for name in spark if _FUNCTION.match(name))}
    return tuple(Named(f"{name}(", "function") for name in sorted(names))
