"""What one unit of each kind of work costs, in seconds of one core."""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from wjoin.grammar.errors import WJoinError


@dataclass(frozen=True)
class Constants:
    """Seconds of one core for one unit of work.

    ``row`` and ``byte``: bringing a row, or a byte of one, to its worker in order. ``probe_*``: a
    tuple that looks for partners in one run; ``pair_*``: a pair of a tuple and a row that is
    compared, by kernel. ``tuple``: a partial tuple that is kept. ``result``: a result tuple, to
    the rows of the statement. ``state``: a row written to state. ``batch`` and ``stage``: a
    micro-batch, and every stage in it. ``native_*``: the same for one of Spark's own joins of
    streams; ``table_row``: a row that one of them reads of a table.

    The defaults were measured by ``wjoin calibrate`` on two cores; ``byte``, ``result``, ``state``,
    ``table_row`` and ``native_pair``, which it does not measure, were set by hand.
    """

    row: float = 4.1e-7
    byte: float = 2.0e-9
    probe_hw: float = 6.2e-9
    probe_mw: float = 9.7e-9
    probe_nlw: float = 1.8e-8
    probe_ordered: float = 6.2e-9
    pair_hw: float = 7.1e-9
    pair_mw: float = 7.2e-9
    pair_nlw: float = 1.7e-8
    pair_ordered: float = 7.1e-9
    tuple: float = 5.1e-8
    result: float = 2.0e-6
    state: float = 4.0e-7
    batch: float = 0.23
    stage: float = 0.14
    native_row: float = 3.3e-5
    table_row: float = 2.0e-6
    native_pair: float = 4.0e-7
    native_batch: float = 0.18
    native_join: float = 0.09


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
