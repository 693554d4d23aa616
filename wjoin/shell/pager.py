"""Long results: shown by the user's pager where they are longer or wider than the terminal."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text


def show_lines(lines: Sequence[str], out: TextIO, size: os.terminal_size, paged: bool) -> None:
    """Write lines to a terminal, through the pager (PAGER, or less) where they do not fit into it."""
    fits = len(lines) < size.lines - 2 and all(_width(line) <= size.columns for line in lines)
    text = "".join(f"{line}\n" for line in lines)
    if fits or not paged or not _paged(text, out):
        out.write(text)
        out.flush()


def _width(line: str) -> int:
    return cell_len(Text.from_ansi(line).plain if "\x1b" in line else line)


def _paged(text: str, out: TextIO) -> bool:
    """Return whether there is a pager; wait for its end."""
    # less: keep colours, do not fold lines.
    environment = {"LESS": "-RS", "LESSCHARSET": "utf-8", **os.environ}
    out.flush()
    try:
        command = shlex.split(os.environ.get("PAGER", "less")) or ["cat"]
        subprocess.run(command, input=text.encode(errors="replace"), stdout=out, env=environment, check=False)
    except (OSError, ValueError):
        return False
    return True
