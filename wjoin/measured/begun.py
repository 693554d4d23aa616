"""What is kept beside a checkpoint so that other statements can go on with its state: who began it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = int | float | str | bool | None
"""The value of a parameter that can be kept."""

Columns = dict[str, str]
"""The types of columns, by their names and in their order."""


@dataclass(frozen=True)
class BegunJoin:
    """A window join as the state began with it: the text of its SELECT, and the sinks that took of it then.

    ``sinks`` is empty for a statement by itself.
    """

    text: str
    sinks: str = ""


@dataclass(frozen=True)
class KnownSink:
    """A sink that has had rows: their columns, and the last micro-batch before its first one, -1 for none."""

    columns: Columns
    after: int = -1


@dataclass(frozen=True)
class Begun:
    """The joins by their numbers, and the parameters of their texts, from the beginning; the sinks so far."""

    joins: tuple[BegunJoin, ...]
    parameters: dict[str, Value] = field(default_factory=dict)
    sinks: dict[str, KnownSink] = field(default_factory=dict)

    def knows(self, sink: str) -> bool:
        """Return whether a sink has had rows of the query."""
        return sink.lower() in self.sinks

    def with_sinks(self, columns: Mapping[str, Columns], after: int) -> "Begun":
        """Return this with the columns of the rows that sinks, by their names, get after a micro-batch."""
        found = {
            name.lower(): KnownSink(each, self.sinks[name.lower()].after if self.knows(name) else after)
            for name, each in columns.items()
        }
        return Begun(self.joins, self.parameters, {**self.sinks, **found})


def kept_values(params: Mapping[str, object]) -> dict[str, Value] | None:
    """Return the values of parameters, None where one cannot be kept."""
    found = {
        name: value for name, value in params.items() if value is None or isinstance(value, int | float | str)
    }
    return found if len(found) == len(params) else None
