"""What one unit of each kind of work costs, in seconds of one core."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.registry import KERNELS


@dataclass(frozen=True)
class Constants:
    """Seconds of one core for one unit of work.

    ``row`` and ``byte``: bringing a row, or a byte of one, to its worker in order. ``kernels``: what was
    measured of them, by names such as ``probe_hw`` and ``pair_hw``; the others are as they say themselves.
    ``condition``: one of those that are tested on a pair before it is made. ``tuple``: a partial tuple that
    is kept. ``result``: a result tuple, to the rows of the statement. ``state``: a row written to state.
    ``batch`` and ``stage``: a micro-batch, and every stage in it. ``worker``: each worker of a stage beyond
    the first, in a micro-batch. ``native_*``: the same for one of Spark's own joins of streams;
    ``native_pair``: a pair of rows with the same key, whatever their times; ``native_result``: a result of
    one. ``files_*``: the same where the state is in files, not in Spark's store. ``table_*`` and
    ``native_table_*``: the same over tables, where a job is the only micro-batch and takes all cores for as
    long as it lasts.

    The defaults were measured by ``wjoin calibrate`` on two cores; that of ``worker``, and ``byte``,
    ``condition``, ``state`` and ``native_pair``, which it does not measure, were set by hand. With the state
    in files a micro-batch and a stage took 0.69 times as long, rows and workers no less.
    """

    row: float = 1.9e-7
    byte: float = 2.0e-9
    condition: float = 9.0e-9
    tuple: float = 5.2e-8
    result: float = 6.0e-7
    state: float = 4.0e-7
    batch: float = 0.24
    stage: float = 0.15
    worker: float = 0.012
    files_row: float = 1.9e-7
    files_batch: float = 0.16
    files_stage: float = 0.10
    files_worker: float = 0.012
    native_row: float = 3.4e-5
    native_pair: float = 4.0e-7
    native_result: float = 9.2e-8
    native_batch: float = 0.17
    native_join: float = 0.083
    table_row: float = 9.2e-7
    table_byte: float = 9.6e-9
    table_result: float = 3.6e-7
    table_batch: float = 0.38
    table_stage: float = 0.38
    native_table_row: float = 6.0e-7
    native_table_pair: float = 2.0e-8
    native_table_batch: float = 0.18
    native_table_join: float = 0.091
    kernels: Mapping[str, float] = field(default_factory=dict)

    def search_seconds(self, kernel: str) -> float:
        """Return what a tuple costs that meets a run without a row near it."""
        return self.kernels.get(f"probe_{kernel}", KERNELS[kernel].search_seconds)

    def pair_seconds(self, kernel: str) -> float:
        """Return what a pair of a tuple and a row costs that a kernel compares."""
        return self.kernels.get(f"pair_{kernel}", KERNELS[kernel].pair_seconds)

    def measured(self, costs: Mapping[str, float]) -> "Constants":
        """Return the constants with some costs, by their names, in place of what they were."""
        own = {name: value for name, value in costs.items() if name not in _of_kernels()}
        others = {name: value for name, value in costs.items() if name in _of_kernels()}
        return replace(self, **own, kernels={**self.kernels, **others})

    @property
    def costs(self) -> dict[str, float]:
        """All costs by their names, those of kernels among them, in seconds."""
        own = asdict(self)
        kernels = own.pop("kernels")
        return {**own, **kernels}

    def over_tables(self) -> "Constants":
        """Return the constants with those of tables in the stead of those of streams."""
        return self._with("table_")

    def in_files(self) -> "Constants":
        """Return the constants with those of state in files in the stead of those of Spark's store."""
        return self._with("files_")

    def fixed(self, joins: Sequence[Sequence[int]]) -> float:
        """Return the seconds of a micro-batch of streams that are no work on rows.

        ``joins``: how many workers each stage has, of joins that run together.
        """
        stages = max(map(len, joins), default=0)
        return self.batch + self.stage * stages + self.worker * sum(map(sum, joins))

    def _with(self, prefix: str) -> "Constants":
        own = {name: value for name, value in vars(self).items() if prefix in name}
        return replace(self, **{name.replace(prefix, ""): value for name, value in own.items()})


def constants_file() -> Path:
    """Return where the constants of this machine are kept: the user's folder of settings."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "wjoin" / "costs.json"


def load_constants(path: Path | None = None) -> Constants:
    """Return the constants that ``wjoin calibrate`` has saved, or those of the package.

    Raises WJoinError WJ610 where the file is not what it wrote.
    """
    path = path or constants_file()
    try:
        body = json.loads(path.read_text())
    except FileNotFoundError:
        return Constants()
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    names = {each.name for each in fields(Constants)} - {"kernels"} | _of_kernels()
    if not isinstance(body, dict) or not body.keys() <= names:
        raise _unreadable(path, "it holds unknown names")
    if not all(isinstance(each, int | float) and each >= 0 for each in body.values()):
        raise _unreadable(path, "it holds an invalid cost")
    return Constants().measured(body)


def _of_kernels() -> set[str]:
    return {f"{what}_{name}" for name in KERNELS for what in ("probe", "pair")}


def save_constants(constants: Constants) -> Path:
    """Write constants to the user's folder of settings; return the file."""
    path = constants_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(constants.costs, indent=2) + "\n")
    unfinished.replace(path)
    return path


def _unreadable(path: Path, reason: str) -> WJoinError:
    message = f"the costs of this machine in {path} cannot be read: {reason}"
    return WJoinError("WJ610", message, help="run wjoin calibrate again, or remove the file")
