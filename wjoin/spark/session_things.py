"""What this process holds for a Spark session, one thing of a kind: it goes with the session."""

from collections.abc import Callable
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

Thing = TypeVar("Thing")


class Held:
    """The things of one Spark session, by their kind; one that refers to the session keeps it alive."""

    def __init__(self) -> None:
        self._things: dict[type, object] = {}

    def get(self, kind: type[Thing], make: Callable[[], Thing]) -> Thing:
        """Return the thing of a kind, made where there is none."""
        if (found := self.known(kind)) is not None:
            return found
        # Threads may ask for it at once: all get the same.
        return cast(Thing, self._things.setdefault(kind, make()))

    def known(self, kind: type[Thing]) -> Thing | None:
        """Return the thing of a kind, None where there is none."""
        return cast("Thing | None", self._things.get(kind))

    def drop(self, kind: type[Thing]) -> Thing | None:
        """Hold the thing of a kind no more, and return it."""
        return cast("Thing | None", self._things.pop(kind, None))


_sessions: "WeakKeyDictionary[SparkSession, Held]" = WeakKeyDictionary()


def held(spark: SparkSession) -> Held:
    """Return what is held for a Spark session."""
    return _sessions.setdefault(spark, Held())


def held_by_all(kind: type[Thing]) -> list[Thing]:
    """Return the things of a kind of all sessions."""
    found = (each.known(kind) for each in list(_sessions.values()))
    return [each for each in found if each is not None]
