"""What is being waited for, said on standard error."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text


@contextlib.contextmanager
def waiting(what: str, tells: Callable[[], str] = str) -> Iterator[None]:
    """Say on standard error what is being waited for inside, and how long: redrawn on a terminal, else once.

    ``tells`` says on a terminal what of it is happening.
    """
    if not Console(stderr=True).is_terminal:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield
        return
    began, spinner = time.monotonic(), Spinner("dots", style="status.spinner")

    def drawn() -> Spinner:
        now = "".join(f", {told}" for told in [tells()] if told)
        spinner.update(text=Text(f"{what}{now} ... {time.monotonic() - began:.0f} s"))
        return spinner

    # While Java starts, standard error is its log: the terminal stays this one.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal:
        console = Console(file=terminal, force_terminal=True)
        with Live(get_renderable=drawn, console=console, refresh_per_second=4, transient=True):
            yield
