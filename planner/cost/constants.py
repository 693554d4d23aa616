"""What one unit of each kind of work costs, in seconds of one core."""

import json
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from wjoin.grammar.errors import WJoinError


@dataclass(frozen=True)
class Constants:
    """Seconds of one core for one unit of work.

    ``row`` and ``byte``: bringing a row, or a byte of one, to its worker in order. ``probe_*``: a
    tuple that meets a run without a row near it, as most are; ``pair_*``: a pair of a tuple and a row that is
    compared, by kernel. ``tuple``: a partial tuple that is kept. ``result``: a result tuple, to
    the rows of the statement. ``state``: a row written to state. ``batch`` and ``stage``: a
    micro-batch, and every stage in it. ``native_*``: the same for one of Spark's own joins of
    streams; ``native_pair``: a pair of rows with the same key, whatever their times;
    ``native_result``: a result of one. ``table_*`` and ``native_table_*``: the same over tables, where
    a job is the only micro-batch and takes all cores for as long as it lasts.

    The defaults were measured by ``wjoin calibrate`` on two cores; ``byte``, ``state`` and
    ``native_pair``, which it does not measure, were set by hand.
    """

    row: float = 1.9e-7
    byte: float = 2.0e-9
    probe_hw: float = 4.6e-9
    probe_mw: float = 8.7e-9
    probe_nlw: float = 1.9e-8
    probe_ordered: float = 6.0e-9
    pair_hw: float = 7.8e-9
    pair_mw: float = 7.5e-9
    pair_nlw: float = 1.6e-8
    pair_ordered: float = 1.4e-8
    tuple: float = 5.2e-8
    result: float = 6.0e-7
    state: float = 4.0e-7
    batch: float = 0.24
    stage: float = 0.15
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

    def over_tables(self) -> "Constants":
        """Return the constants with those of tables in the stead of those of streams."""
        return replace(
            self,
            row=self.table_row,
            byte=self.table_byte,
            result=self.table_result,
            batch=self.table_batch,
            stage=self.table_stage,
            native_row=self.native_table_row,
            native_pair=self.native_table_pair,
            native_batch=self.native_table_batch,
            native_join=self.native_table_join,
        )


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
    names = {each.name for each in fields(Constants)}
    if not isinstance(body, dict) or not body.keys() <= names:
        raise _unreadable(path, "it holds other names")
    if not all(isinstance(each, int | float) and each >= 0 for each in body.values()):
        raise _unreadable(path, "it holds a value that is no cost")
    return Constants(**body)


def save_constants(constants: Constants, path: Path | None = None) -> Path:
    """Write constants to the user's folder of settings; return the file."""
    path = path or constants_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(constants), indent=2) + "\n")
    unfinished.replace(path)
    return path


def _unreadable(path: Path, reason: str) -> WJoinError:
    message = f"the costs of this machine in {path} cannot be read: {reason}"
    return WJoinError("WJ610", message, help="run wjoin calibrate again, or remove the file")
