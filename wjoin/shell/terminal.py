"""The shell at a terminal: Spark starts behind the first prompt, queries run behind the later ones."""

import contextlib
import functools
import io
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.shell.attended import Interrupts, Left, Work
from wjoin.shell.known import KnownNames
from wjoin.shell.pager import show_lines
from wjoin.shell.paint import Paint
from wjoin.shell.prompt import Prompt
from wjoin.shell.shell import Choices, Leave, Shell
from wjoin.shell.status_line import status_line, status_text
from wjoin.shell.tables import TextRows, column_widths, head_lines, records, row_lines, table, table_width

if TYPE_CHECKING:
    from wjoin.grammar.statement_kinds import Statement
    from wjoin.queries.running import Running
    from wjoin.session import Session
    from wjoin.shell.printed_answers import Answer

T = TypeVar("T")

_QUIET_SECONDS = 0.5
"""A statement that takes longer is said to run."""

_LOOK_SECONDS = 1.0
"""How often the line below the prompt is made anew."""

_POLL_SECONDS = 0.05
_STATUS_SECONDS = 0.2
_AGAIN_SECONDS = 0.5
_CLOSING_SECONDS = 5.0


class Stopped(Exception):  # noqa: N818 (the user wanted it)
    """A statement was cancelled."""


@dataclass(frozen=True)
class Screen:
    """The terminal: where it is written to, and its colours."""

    out: TextIO
    paint: Paint

    @property
    def size(self) -> os.terminal_size:
        """How wide and high it is now."""
        with contextlib.suppress(OSError):
            found = os.get_terminal_size(self.out.fileno())
            if found.columns and found.lines:
                return found
        return shutil.get_terminal_size()


class TerminalShell(Shell):
    """A shell whose statements are typed, and carried out by threads that Ctrl-C can leave behind."""

    has_keys = True

    def __init__(
        self,
        choices: Choices,
        screen: Screen,
        reader: Prompt,
        start: "Work[Session]",
        interrupts: Interrupts,
        known: KnownNames,
        *,
        debug: bool,
    ) -> None:
        super().__init__(choices)
        self._debug = debug
        self._screen = screen
        self._reader = reader
        self._start = start
        self._interrupts = interrupts
        self._known = known
        self._console = Console(file=screen.out, highlight=False)
        self._told: list[Running] = []
        self._closing = threading.Event()
        self._looking = threading.Thread(target=self._look, name="wjoin-status", daemon=True)
        self._statements = 0
        self._gone = False

    # What is read ----------------------------------------------------------

    def run(self, first: Callable[[], None] | None = None) -> None:
        """Carry out what is typed until the user leaves; before that what ``first`` does."""
        self._looking.start()
        leaving = first is not None and not self._unseen(first)
        while not (leaving and self._may_leave()):
            try:
                text = self._reader.read()
            except KeyboardInterrupt:
                leaving = False
            except EOFError:
                leaving = True
            else:
                leaving = not self._unseen(functools.partial(self.enter, text))

    def _unseen(self, do: Callable[[], None]) -> bool:
        """Do something while what is typed waits for the next prompt; return whether the user stays."""
        with self._reader.unseen():
            return self._try(do)

    def _try(self, do: Callable[[], None]) -> bool:
        """Do something, and show what goes wrong; return whether the user stays."""
        paint = self._screen.paint
        try:
            do()
        except Leave:
            return False
        except WJoinError as error:
            if not (error.code == "WJ607" and self._tell_end(error.__cause__)):
                self._print(paint.diagnostic(error.render()))
        except Stopped as stopped:
            self._print(paint(str(stopped), "warning"))
        except Exception as error:
            # Whatever it is, the user goes on, and so do the queries.
            if self._debug:
                raise
            from wjoin.spark.spark_failures import cause

            if not self._tell_end(error):
                self._print(paint.diagnostic(f"error: {cause(error)}"))
        if self._start.good:
            self._known.refresh(self._start.result())
        return True

    def _tell_end(self, failure: BaseException | None = None) -> bool:
        """Tell that Spark is gone where it is, of which a failure may tell first; return whether it is."""
        if not self._start.good:
            return False
        from wjoin.shell.gone import ENDING_SECONDS, NOT_REACHED, gone

        how = gone(ENDING_SECONDS if isinstance(failure, NOT_REACHED) else 0)
        if how is not None:
            self._gone = True
            self._print(self._screen.paint.diagnostic(how))
        return how is not None

    # What is shown ---------------------------------------------------------

    def say(self, text: str) -> None:
        """Show what a command answers."""
        self._show(text.splitlines())

    def _print(self, text: str) -> None:
        # Not to the terminal itself: a prompt or a status that is there is drawn below it.
        print(text, flush=True)

    def _show(self, lines: Sequence[str]) -> None:
        """Show lines, through the pager where they are many; what others print meanwhile comes after."""
        held = io.StringIO()
        with contextlib.redirect_stdout(held), contextlib.redirect_stderr(held):
            show_lines(lines, self._screen.out, self._screen.size, self.choices.pager)
        print(held.getvalue(), end="", flush=True)

    def _remark(self, text: str, seconds: float) -> None:
        """Show a remark, and where the user likes how long a statement has taken."""
        took = f"{seconds:.2f} s" if self.choices.timer else ""
        if shown := ", ".join(part for part in (text, took) if part):
            self._print(self._screen.paint(shown, "dim"))

    # What is carried out ---------------------------------------------------

    def session(self) -> "Session":
        """Return the session; wait for Spark where that is on its way. Raises Stopped at Ctrl-C."""
        self._interrupts.count = 0
        with self._waiting() as tell:
            while not self._start.wait(_POLL_SECONDS):
                tell(f"Spark is starting ... {time.monotonic() - self._start.began:.0f} s")
                if self._interrupts.count or self._interrupts.ended:
                    raise Stopped("Cancelled; Spark is still starting")
        return self._start.result()

    def perform(self, text: str, statement: "Statement") -> None:
        """Carry out a statement and show what it answers. Raises WJoinError, and Stopped at Ctrl-C."""
        session = self.session()
        # Imports Spark's client, which the first prompt does without.
        from wjoin.queries.running import Running
        from wjoin.shell.explained import explained
        from wjoin.shell.printed_answers import answer
        from wjoin.statements.explanation import Explanation

        self._statements += 1
        group = f"wjoin-shell-{self._statements}"
        before = {each.runId for each in session.spark.streams.active}
        began = time.monotonic()
        asked = session.context.asked(text, dict(self.choices.params))
        shown = _Shown(self._screen, self._print)
        work = Work(lambda: answer(asked, statement, self.choices, group, self._told.append, shown.show))
        left = threading.Event()
        try:
            found = self._attend(work, lambda: _cancel(session, group, before, work, left))
        except Stopped:
            left.set()
            Work(lambda: _stop_late(work))
            raise
        # Not the time for which a result is read in the pager.
        seconds = time.monotonic() - began
        match found:
            case TextRows():
                self._show_rows(found, seconds)
            case Explanation():
                self._show(explained(found, self._screen.size.columns, self._screen.paint))
                self._remark("", seconds)
            case Running(sink=None):
                self._watch(found, shown, session)
            case Running(name=name):
                self._remark(f"{name} runs: SHOW QUERIES, DESCRIBE QUERY {name}, STOP QUERY {name}", seconds)
            case _:
                self._remark(found, seconds)

    def _show_rows(self, rows: TextRows, seconds: float) -> None:
        count, size = len(rows.rows), self._screen.size
        lines = table(rows, self._screen.paint)
        if count and table_width(rows) > size.columns:
            each = records(rows, self._screen.paint)
            lines = each if len(each) < size.lines - 2 else lines
        self._show(lines)
        if rows.more:
            self._remark(f"the first {counted(count, 'row')} (.rows {10 * count} fetches more)", seconds)
        else:
            self._remark(f"{count:,} row{'s' * (count != 1)}", seconds)

    def _watch(self, running: "Running", shown: "_Shown", session: "Session") -> None:
        """Tell of a SELECT over streams until it ends or is interrupted. Raises WJoinError where it fails."""
        self._interrupts.count = 0
        with self._waiting(at_once=True) as tell:
            interrupts = self._interrupts
            while running.followed.ended is None and not (interrupts.count or interrupts.ended or self._gone):
                found = f"{shown.found:,} row{'s' * (shown.found != 1)} found"
                tell(f"{status_text(running)}  {found}  (Ctrl-C stops it)")
                time.sleep(_STATUS_SECONDS)
        self._attend(Work(running.stop), lambda: None)
        self._attend(Work(session.settle), lambda: None)
        self._print(self._screen.paint(running.line(), "dim"))
        if (error := running.failed) is not None:
            raise error

    @contextlib.contextmanager
    def _waiting(self, at_once: bool = False) -> Iterator[Callable[[str], None]]:
        """Give a function that says below all that is printed what is being waited for, after a moment."""
        began = time.monotonic()
        status: Status | None = None

        def tell(text: str) -> None:
            nonlocal status
            if not at_once and time.monotonic() - began < _QUIET_SECONDS:
                return
            if status is None:
                status = self._console.status(escape(text))
                status.start()
            else:
                status.update(escape(text))

        try:
            yield tell
        finally:
            if status is not None:
                status.stop()

    def _attend(self, work: Work[T], cancel: Callable[[], None]) -> T:
        """Wait for the end of work and return its result. Raises Stopped where it was cancelled."""
        with self._waiting() as tell:

            def tick(seconds: float, cancelled: bool) -> None:
                again = "Cancelling ... (Ctrl-C again detaches)"
                tell(again if cancelled else f"{seconds:.0f} s (Ctrl-C cancels)")

            try:
                cancelled = work.attend(self._interrupts, cancel, tick)
            except Left:
                raise Stopped("Detached: it may still be running") from None
        if cancelled and work.failed:
            raise Stopped("Cancelled")
        return work.result()

    # What runs behind the prompt -------------------------------------------

    def _look(self) -> None:
        """Keep the line below the prompt as things are, and tell of queries that have failed."""
        while not self._closing.is_set():
            status = self._status()
            if status != self._reader.status:
                self._reader.status = status
                self._reader.redraw()
            self._closing.wait(_LOOK_SECONDS)

    def _status(self) -> str:
        if not self._start.done():
            return f"Spark is starting, {time.monotonic() - self._start.began:.0f} s"
        if self._start.failed:
            return "Spark could not be started"
        if self._gone or self._tell_end():
            return "Spark has ended"
        return status_line(self._running(self._start.result()), self._screen.size.columns - 2)

    def _running(self, session: "Session") -> list[str]:
        """Return what the queries do that run; tell of those that have failed since the last time."""
        found = []
        for each in list(session.running):
            if any(each is told for told in self._told):
                continue
            if each.followed.ended is not None:
                self._told.append(each)
                if (error := each.failed) is not None:
                    self._print(self._screen.paint.diagnostic(error.render()))
            else:
                found.append(status_text(each))
        return found

    # The end ---------------------------------------------------------------

    def _may_leave(self) -> bool:
        """Return whether to leave: where queries run the user says."""
        if self._interrupts.ended or not self._start.good:
            return True
        names = [each.name for each in _active(self._start.result())]
        if not names:
            return True
        what = f"{names[0]} runs" if len(names) == 1 else f"{len(names)} queries run ({', '.join(names)})"
        return self._reader.ask(f"{what}. Stop {'it' if len(names) == 1 else 'them'} and leave? [Y/n] ")

    def close(self) -> None:
        """Stop queries and Spark, and say how far the queries have come."""
        self._closing.set()
        if not self._start.good:
            # Java ends with this process.
            return
        from wjoin.measured.beside import UNREACHABLE

        session = self._start.result()
        running = _active(session)
        # Nobody asks a Spark that is being stopped.
        self._looking.join(_CLOSING_SECONDS)
        self._known.forget()

        def stop() -> None:
            for each in running:
                each.stop()
                each.followed.look()
            session.settle()

        self._interrupts.ended = False
        with contextlib.suppress(Stopped, *UNREACHABLE):
            self._attend(Work(stop), lambda: None)
            for each in running:
                self._print(each.line())
            self._attend(Work(session.spark.stop), lambda: None)


def _active(session: "Session") -> "list[Running]":
    """Return the queries that run; none where Spark is gone."""
    from wjoin.measured.beside import UNREACHABLE

    with contextlib.suppress(*UNREACHABLE):
        return [each for each in session.running if each.query.isActive]
    return []


class _Shown:
    """Micro-batches below each other: columns keep their widths, and have their names above each screen."""

    def __init__(self, screen: Screen, show: Callable[[str], None]) -> None:
        self.found = 0
        self._screen = screen
        self._print = show
        self._widths: tuple[int, ...] = ()
        self._lines = 0

    def show(self, shown: TextRows, count: int, whole: bool) -> None:
        """Show the rows of a micro-batch, which has ``count``; ``whole``: all rows so far."""
        size, paint = self._screen.size, self._screen.paint
        self.found += count
        widths = column_widths(shown, size.columns)
        if self._widths and not whole:
            wider = tuple(map(max, widths, self._widths))
            widths = wider if sum(wider) + 3 * len(wider) - 1 <= size.columns else widths
        head: list[str] = []
        if whole or widths != self._widths or self._lines >= size.lines - 2:
            head = head_lines(shown, widths, paint)
            self._lines = 0
        lines = [*head, *row_lines(shown, widths, paint)]
        if shown.more:
            lines.append(paint(f"{counted(count - len(shown.rows), 'more row')} of this micro-batch", "dim"))
        self._widths = widths
        self._lines += len(lines)
        self._print("\n".join(lines))


def _stop_late(work: "Work[Answer]") -> None:
    """Stop the SELECT over streams that a statement starts which nobody waits for any more."""
    from wjoin.queries.running import Running

    if isinstance(found := work.result(), Running) and found.sink is None:
        found.stop()


def _cancel(
    session: "Session", group: str, before: "set[str]", work: "Work[Answer]", left: threading.Event
) -> None:
    """Cancel the jobs of a statement, and the queries that it has started and waits for, until it ends.

    Its next job may begin after the one that has been cancelled. Once it is ``left`` behind, queries that
    start are those of other statements.
    """
    from wjoin.measured.beside import UNREACHABLE

    with contextlib.suppress(*UNREACHABLE):
        while not work.done():
            session.sparkContext.cancelJobGroup(group)
            for query in session.spark.streams.active:
                if query.runId not in before and not left.is_set():
                    query.stop()
            work.wait(_AGAIN_SECONDS)
