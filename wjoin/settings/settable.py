"""The settings of a session, as SET takes them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.grammar.durations import count_of, from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import HINTS
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import suggestion
from wjoin.homes.homes import AUTO, HOMES
from wjoin.planner.choose.choice import check_setting
from wjoin.planner.cost.constants import load_constants
from wjoin.planner.cost.model import CostSettings
from wjoin.settings.triggers import processing_time

_HINT_SETTINGS = {f"wjoin.{name.lower()}": name for name in HINTS}
SETTINGS = (
    *("wjoin.checkpoint", "wjoin.cores", "wjoin.interval", "wjoin.memory", "wjoin.network"),
    *("wjoin.objective", "wjoin.sharing", "wjoin.state", "wjoin.stretch", "wjoin.trigger"),
    "wjoin.waiting",
    *_HINT_SETTINGS,
)
"""The settings that SET knows: ``wjoin.checkpoint`` is the folder of the checkpoints of INSERT INTO,
``wjoin.cores`` how many tasks Spark runs at once, ``wjoin.interval`` the event time that a micro-batch is
expected to bring, ``wjoin.memory`` what the state of a join may take, ``wjoin.network`` the bytes a second
that reach a worker, ``wjoin.objective`` what plans are weighed for, ``wjoin.sharing`` whether the INSERT
INTOs of a script are a statement set, ``wjoin.state`` where the state of INSERT
INTO is (``homes.homes``), ``wjoin.stretch`` how many bytes of new
rows a worker joins at once, ``wjoin.trigger`` how often micro-batches start, ``wjoin.waiting`` how many bytes
of rows may wait for each sink of a statement set that fails; the others are defaults for
the hints of their names."""

OBJECTIVES = ("latency", "throughput")

SHARED = "auto"
"""The value of wjoin.sharing with which the INSERT INTOs of a script are a statement set."""


def _interval(value: str) -> float:
    """Return an interval in seconds. Raises WJoinError WJ603."""
    remedy = "give the event time that a micro-batch covers, such as '10 seconds' (not how often one starts)"
    try:
        seconds = from_pairs(value, Span(0, len(value))) / 1_000_000
    except WJoinError as error:
        raise WJoinError("WJ603", f"wjoin.interval is {value}: {error.message}", help=remedy) from None
    if seconds <= 0:
        raise WJoinError(
            "WJ603", f"wjoin.interval is {value}, but a micro-batch covers time above zero", help=remedy
        )
    return seconds


def _bytes(name: str, value: str) -> int:
    """Return a size in bytes. Raises WJoinError WJ603."""
    found = re.fullmatch(r"(\d{1,19}) *([kmgt]?)b?", value.strip().lower())
    size = int(found[1]) << (10 * " kmgt".index(found[2] or " ")) if found else 0
    if not 0 < size < 2**63:
        raise WJoinError("WJ603", f"{name} is {value}", help="give a size, such as '4g' or '512m'")
    return size


def _cores(value: str) -> int:
    """Return a number of cores. Raises WJoinError WJ603."""
    cores = count_of(value)
    if cores is None:
        raise WJoinError(
            "WJ603", f"wjoin.cores is {value}", help="give the number of tasks that Spark runs at once"
        )
    return cores


def _one_of(name: str, values: Sequence[str], value: str) -> str:
    """Return one of the values that a setting can have. Raises WJoinError WJ603."""
    if value.lower() not in values:
        raise WJoinError("WJ603", f"{name} has no value {value}", help=f"known: {', '.join(values)}")
    return value.lower()


_READ: dict[str, Callable[[str], Any]] = {
    "wjoin.cores": _cores,
    "wjoin.interval": _interval,
    "wjoin.objective": lambda value: _one_of("wjoin.objective", OBJECTIVES, value),
    "wjoin.sharing": lambda value: _one_of("wjoin.sharing", ("off", SHARED), value),
    "wjoin.state": lambda value: _one_of("wjoin.state", HOMES, value),
    "wjoin.memory": lambda value: _bytes("wjoin.memory", value),
    "wjoin.network": lambda value: _bytes("wjoin.network", value),
    "wjoin.stretch": lambda value: _bytes("wjoin.stretch", value),
    "wjoin.trigger": lambda value: processing_time(value, "wjoin.trigger"),
    "wjoin.waiting": lambda value: _bytes("wjoin.waiting", value),
}


@dataclass(frozen=True)
class Settings:
    """The settings of one session that have a value, by name in lower case."""

    values: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str | None:
        """Return the value of a setting, None where it has none."""
        return self.values.get(name)

    def set(self, name: str, value: str) -> None:
        """Give a setting a value. Raises WJoinError WJ603."""
        key = name.lower()
        if key not in SETTINGS:
            help = f"{suggestion(key, SETTINGS)} known: {', '.join(SETTINGS)}".lstrip()
            raise WJoinError("WJ603", f"wjoin has no setting {key}", help=help)
        if key in _HINT_SETTINGS:
            check_setting(_HINT_SETTINGS[key], value)
        elif key in _READ:
            _READ[key](value)
        self.values[key] = value

    def hint_defaults(self) -> dict[str, str]:
        """Return the defaults for hints, by the name of the hint."""
        return {hint: self.values[key] for key, hint in _HINT_SETTINGS.items() if key in self.values}

    def costs(self) -> CostSettings:
        """Return what plans are weighed with, as far as the settings tell."""
        return CostSettings(
            load_constants(),
            self._read("wjoin.interval", 1.0),
            self._read("wjoin.memory"),
            self._read("wjoin.cores"),
            network=self._read("wjoin.network"),
            throughput=self._read("wjoin.objective") == "throughput",
            stretch=self.stretch(),
        )

    def stretch(self) -> int:
        """Return the bytes of new rows that a worker joins at once."""
        return int(self._read("wjoin.stretch", STRETCH_BYTES))

    def home(self) -> str:
        """Return where the state of INSERT INTO shall be."""
        return str(self._read("wjoin.state", AUTO))

    def waiting(self) -> int:
        """Return how many bytes of rows may wait for each sink of a statement set that fails."""
        return int(self._read("wjoin.waiting", 1 << 30))

    def trigger(self, given: str | None = None) -> str | None:
        """Return how often micro-batches start, as Spark takes it: as ``given``, or set; None: at once.

        Raises WJoinError WJ603.
        """
        every = given or self.get("wjoin.trigger")
        return None if every is None else processing_time(every)

    def _read(self, name: str, default: Any = None) -> Any:
        return _READ[name](self.values[name]) if name in self.values else default
