"""What is kept beside a checkpoint so that other statements can go on with its state: who began it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from wjoin.grammar.tokens import first_word, names_in

_CALLS_JAVA = frozenset({"java_method", "reflect", "try_reflect"})

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

    @property
    def plain(self) -> bool:
        """Whether the text is a SELECT that calls no methods of Java: others may have written it there."""
        return first_word(self.text) == "SELECT" and names_in(self.text).isdisjoint(_CALLS_JAVA)


@dataclass(frozen=True)
class KnownSink:
    """A sink that has had rows of the query: their columns, and which of its micro-batches it has.

    Those after the micro-batch ``after``, -1 for all. Spark's sinks of files number what they get without a
    gap: ``skipped`` micro-batches were for others. ``taken``: whether the query writes into it now.
    ``history``: whether it gets the results among the rows that the state had before, too.
    """

    columns: Columns
    after: int = -1
    skipped: int = 0
    taken: bool = True
    history: bool = False


@dataclass(frozen=True)
class Begun:
    """The joins by their numbers, and the parameters of their texts, from the beginning; the sinks so far."""

    joins: tuple[BegunJoin, ...]
    parameters: dict[str, Value] = field(default_factory=dict)
    sinks: dict[str, KnownSink] = field(default_factory=dict)

    def sink(self, name: str) -> KnownSink | None:
        """Return what is known of a sink, None where it has had nothing yet."""
        return self.sinks.get(name.lower())

    @property
    def histories(self) -> frozenset[str]:
        """The names, in lower case, of the sinks that have a history, and that the query writes into."""
        return frozenset(name for name, each in self.sinks.items() if each.history and each.taken)

    def going_on(
        self,
        columns: Mapping[str, Columns],
        last: int,
        logged: Callable[[str], int | None],
        histories: Collection[str] = (),
    ) -> "Begun":
        """Return this with the sinks into which the query writes after the micro-batch ``last``.

        ``columns`` are those of their rows, by their names. ``logged``: the last number in the log of a sink
        of files, -1 where that is empty; None of another sink. ``histories`` are the sinks, in lower case,
        that have a history where they are not known yet.
        """
        found = {name: replace(each, taken=False) for name, each in self.sinks.items()}
        for name, each in columns.items():
            known, log = self.sink(name), None
            if known is None or not known.taken:
                log = logged(name)
                after = last if known is None or log == -1 else known.after
                history = known is None and name.lower() in histories
                known = KnownSink(each, after, 0 if log is None else last - log, history=history)
            found[name.lower()] = replace(known, columns=each, taken=True)
        return replace(self, sinks=found)


def kept_values(params: Mapping[str, object]) -> dict[str, Value] | None:
    """Return the values of parameters, None where one cannot be kept."""
    found = {
        name: value for name, value in params.items() if value is None or isinstance(value, int | float | str)
    }
    return found if len(found) == len(params) else None
