"""The settings of a session, as SET takes them."""

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.grammar.durations import count_of, from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import APPROXIMATE, HINTS, approximate_goal
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import suggestion
from wjoin.homes.homes import AUTO, HOMES
from wjoin.planner.choose.choice import check_setting
from wjoin.planner.cost.constants import load_constants
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.cost.scaling import Scaling
from wjoin.planner.cost.shed_share import MODELS, OFF, Thresholds
from wjoin.planner.plan.shedding_models import SheddingRules
from wjoin.settings.triggers import processing_time

_APPROXIMATE = f"wjoin.{APPROXIMATE.lower()}"
_HINT_SETTINGS = {f"wjoin.{name.lower()}": name for name in (*HINTS, APPROXIMATE)}
SETTINGS = (
    *("wjoin.checkpoint", "wjoin.cores", "wjoin.disk", "wjoin.executors", "wjoin.interval", "wjoin.memory"),
    *(
        "wjoin.network",
        "wjoin.objective",
        "wjoin.sharing",
        "wjoin.shedding",
        "wjoin.shedding_base",
        "wjoin.state",
    ),
    *("wjoin.stretch", "wjoin.trigger", "wjoin.utilization", "wjoin.waiting", "wjoin.windows_from_where"),
    *_HINT_SETTINGS,
)
"""The settings that SET knows: ``wjoin.checkpoint`` is the folder of the checkpoints of INSERT INTO,
``wjoin.cores`` how many tasks Spark runs at once, ``wjoin.disk`` the bytes that the files of the state of a
join may have, ``wjoin.executors`` between which numbers executors follow the load
(``cost.scaling.Scaling``), ``wjoin.interval`` the event time that a micro-batch is expected to bring,
``wjoin.memory`` what the state of a join may take, ``wjoin.network`` the bytes a second
that reach a worker, ``wjoin.objective`` what plans are weighed for, ``wjoin.sharing`` whether the INSERT
INTOs of a script are a statement set, ``wjoin.shedding`` how rows are shed when a join is overloaded,
``wjoin.shedding_base`` and ``wjoin.utilization`` by which numbers (``cost.shed_share.Thresholds``),
``wjoin.state`` where the state of INSERT
INTO is (``homes.homes``), ``wjoin.stretch`` how many bytes of new
rows a worker joins at once, ``wjoin.trigger`` how often micro-batches start, ``wjoin.waiting`` how many bytes
of rows may wait for each sink of a statement set that fails, ``wjoin.windows_from_where`` whether conditions
between event times are windows; the others are defaults for
the hints of their names."""

_THRESHOLDS, _RANGE = 4, 2

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


def _base(value: str) -> float:
    """Return the base of what is shed. Raises WJoinError WJ603."""
    found = _numbers(value)
    if len(found) != 1 or not 0 <= found[0] <= 1:
        raise WJoinError(
            "WJ603", f"wjoin.shedding_base is {value}", help="give a share between 0 and 1, such as '0.1'"
        )
    return found[0]


def _utilization(value: str) -> Thresholds:
    """Return the thresholds of the utilisation. Raises WJoinError WJ603."""
    found = _numbers(value)
    with contextlib.suppress(ValueError):
        if len(found) == _THRESHOLDS:
            return Thresholds(*found)
    help = "give τ0, τ*, τ1 and τ2 with 0 < τ0 < τ* < τ1 <= τ2 <= 1 and τ1 < 1, such as '0.2 0.4 0.8 0.82'"
    raise WJoinError("WJ603", f"wjoin.utilization is {value}", help=help)


def _scaling(value: str) -> Scaling:
    """Return between which numbers executors follow the load. Raises WJoinError WJ603."""
    counts = [count_of(each) or 0 for each in value.split()[:2]]
    waits = value.split()[2:]
    times = _numbers(" ".join(waits))
    with contextlib.suppress(ValueError):
        if len(counts) == _RANGE and len(times) == len(waits) and len(times) in (0, _RANGE):
            return Scaling(*counts, *times)
    help = (
        "give the least, the most, and the seconds until more are asked for, or fewer, such as '2 8 30 300'"
    )
    raise WJoinError("WJ603", f"wjoin.executors is {value}", help=help)


def _numbers(value: str) -> list[float]:
    """Return the numbers of a text, none where something else is in it."""
    words = value.split()
    known = all(re.fullmatch(r"\d{0,9}\.?\d{1,18}", each) for each in words)
    return [float(each) for each in words] if known else []


def _goal(value: str) -> str:
    """Return what approximate joins are asked for, as the hint has it. Raises WJoinError WJ603."""
    name, _, number = value.partition("=")
    try:
        if value.lower() == OFF:
            return OFF
        return " = ".join(approximate_goal(name.strip(), number.strip())).lower()
    except ValueError as error:
        help = f"SET {_APPROXIMATE} = error = 0.15, or messages = 2, or off"
        raise WJoinError("WJ603", f"{_APPROXIMATE} is {value}: {error}", help=help) from None


def _one_of(name: str, values: Sequence[str], value: str) -> str:
    """Return one of the values that a setting can have. Raises WJoinError WJ603."""
    if value.lower() not in values:
        raise WJoinError("WJ603", f"{name} has no value {value}", help=f"known: {', '.join(values)}")
    return value.lower()


_READ: dict[str, Callable[[str], Any]] = {
    "wjoin.cores": _cores,
    "wjoin.executors": _scaling,
    "wjoin.interval": _interval,
    "wjoin.objective": lambda value: _one_of("wjoin.objective", OBJECTIVES, value),
    "wjoin.disk": lambda value: _bytes("wjoin.disk", value),
    "wjoin.sharing": lambda value: _one_of("wjoin.sharing", ("off", SHARED), value),
    "wjoin.shedding": lambda value: _one_of("wjoin.shedding", MODELS, value),
    "wjoin.shedding_base": _base,
    "wjoin.utilization": _utilization,
    "wjoin.state": lambda value: _one_of("wjoin.state", HOMES, value),
    "wjoin.memory": lambda value: _bytes("wjoin.memory", value),
    "wjoin.network": lambda value: _bytes("wjoin.network", value),
    "wjoin.stretch": lambda value: _bytes("wjoin.stretch", value),
    "wjoin.trigger": lambda value: processing_time(value, "wjoin.trigger"),
    "wjoin.waiting": lambda value: _bytes("wjoin.waiting", value),
    "wjoin.windows_from_where": lambda value: (
        _one_of("wjoin.windows_from_where", ("on", "off"), value) == "on"
    ),
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
        if key == _APPROXIMATE:
            value = _goal(value)
        elif key in _HINT_SETTINGS:
            check_setting(_HINT_SETTINGS[key], value)
        elif key in _READ:
            _READ[key](value)
        self.values[key] = value

    def hint_defaults(self) -> dict[str, str]:
        """Return the defaults for hints, by the name of the hint."""
        return {hint: self.values[key] for key, hint in _HINT_SETTINGS.items() if key in self.values}

    def windows_from_where(self) -> bool:
        """Return whether conditions between event times are windows."""
        return bool(self._read("wjoin.windows_from_where", True))

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

    def shedding(self) -> SheddingRules:
        """Return what the settings say of overload."""
        thresholds = self._read("wjoin.utilization", Thresholds())
        return SheddingRules(
            self._read("wjoin.shedding", OFF),
            replace(thresholds, base=self._read("wjoin.shedding_base", 0.0)),
            self._read("wjoin.memory"),
            self._read("wjoin.disk"),
            self._read("wjoin.interval", 1.0),
        )

    def scaling(self) -> Scaling | None:
        """Return how executors follow the load, None where they stay as they are."""
        found: Scaling | None = self._read("wjoin.executors")
        return found

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
