"""Long results: shown by the user's pager where they are longer or wider than the terminal."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text


def pager_command() -> list[str]:
    """Return the command of the user's pager, PAGER or less; empty where there is none."""
    try:
        given = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    return given if given and shutil.which(given[0]) else []


def show_lines(lines: Sequence[str], out: TextIO, size: os.terminal_size, paged: bool) -> None:
    """Write lines to a terminal, through the pager where they do not fit into it."""
    fits = len(lines) < size.lines - 2 and all(_width(line) <= size.columns for line in lines)
    command = pager_command() if paged and not fits else []
    if not command or not _paged(command, "\n".join(lines), out):
        out.write("".join(f"{line}\n" for line in lines))
        out.flush()


def _width(line: str) -> int:
    return cell_len(Text.from_ansi(line).plain if "\x1b" in line else line)


def _paged(command: Sequence[str], text: str, out: TextIO) -> bool:
    """Return whether the pager has been started; wait for its end."""
    # less: keep colours, do not fold lines.
    environment = {"LESS": "-RS", "LESSCHARSET": "utf-8", **os.environ}
    out.flush()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out.fileno(), env=environment)
    except OSError:
        return False
    try:
        pager.communicate(f"{text}\n".encode(errors="replace"))
    except BrokenPipeError:
        # It has been left before it had read all.
        pager.wait()
    return True
