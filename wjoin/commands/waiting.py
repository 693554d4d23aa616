"""What is being waited for, said on standard error."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
from rich.text import Text


class _Said(ProgressColumn):
    """What is waited for, what of it is happening, and how long it has taken: anew every half second."""

    max_refresh = 0.5

    def __init__(self, tells: Callable[[], str]) -> None:
        super().__init__()
        self._tells = tells

    def render(self, task: Task) -> Text:
        now = "".join(f", {told}" for told in [self._tells()] if told)
        return Text(f"{task.description}{now} ... {task.elapsed or 0:.0f} s")


@contextlib.contextmanager
def waiting(what: str, tells: Callable[[], str] = str) -> Iterator[None]:
    """Say on standard error what is waited for inside, and how long: redrawn on a terminal, else once.

    ``tells`` says on a terminal what of it is happening.
    """
    if not Console(stderr=True).is_terminal:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield
        return
    # While Java starts, standard error is its log: the terminal stays this one.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal:
        columns, console = (SpinnerColumn(), _Said(tells)), Console(file=terminal, force_terminal=True)
        with Progress(*columns, console=console, transient=True) as drawn:
            drawn.add_task(what, total=None)
            yield
