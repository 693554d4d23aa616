"""Running queries as outputs of cells that change while they run."""

import contextlib
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.measured.beside import UNREACHABLE
from wjoin.notebook.drawn import Picture
from wjoin.notebook.screen import CellOutputs
from wjoin.notebook.selects import SelectRows
from wjoin.planner.text.scope import quoted_if_needed
from wjoin.queries.running import Running

_TICK_SECONDS = 1.0
_WAIT_SECONDS = 0.2
_IDLE_SECONDS = 5.0


class LiveCell:
    """A query, the parameters with which it was started, and the output that shows it.

    ``cell_id`` is the front end's name of the cell that has started it, None where it gives none.
    """

    def __init__(
        self,
        running: Running,
        parameters: Mapping[str, Any],
        rows: SelectRows | None = None,
        cell_id: str | None = None,
    ) -> None:
        self.running = running
        self.parameters = parameters
        self.cell_id = cell_id
        self.waited_for = False
        self.ended = threading.Event()
        self._rows = rows
        self._note = ""
        self._output: Any = None
        self._button: Any = None
        self._button_output: Any = None
        self._failed: WJoinError | None = None
        self._drawing = threading.Lock()

    def show(self, screen: CellOutputs, note: str, waited_for: bool) -> None:
        """Show the query as a new output; the one before says that it is no longer the place."""
        with self._drawing:
            if self._output is not None and not self.ended.is_set():
                moved = f"{self.running.name}: shown by a later run of a cell"
                screen.replace(self._output, moved)
                self._close_button(screen)
            self.waited_for, self._note = waited_for, note
            picture = self._picture()
            self._output = screen.show_living(picture)
            if screen.living and not waited_for and picture.living:
                self._button = _stop_button(self.running)
                if self._button is not None:
                    self._button_output = screen.show_widget(self._button, self._how_to_stop())

    def draw(self, screen: CellOutputs) -> None:
        """Show how the query is now; the last time once it has ended."""
        with self._drawing:
            if self.ended.is_set() or self._output is None:
                return
            picture = self._picture()
            screen.replace(self._output, picture, last=not picture.living)
            if not picture.living:
                self._close_button(screen)
                self._forget_rows()
                self.ended.set()

    def wait(self) -> None:
        """Wait until the query has ended and that is shown; an interrupt stops it.

        Raises WJoinError where it failed.
        """
        try:
            self._wait()
        except KeyboardInterrupt:
            self.running.stop()
            self._wait()
        if self._failed is not None:
            raise self._failed

    def _wait(self) -> None:
        # Without a word to Spark, which an interrupt might cut off.
        while not self.ended.wait(_WAIT_SECONDS):
            pass

    def _picture(self) -> Picture:
        """Return how the query is. What has ended before it is looked at has been looked at to its end."""
        running, now = self.running, datetime.now().astimezone()
        try:
            running.followed.look()
            # Ended is what was so before its last reports were taken.
            living = running.seconds is None
            rows = self._rows.table(running.totals.total.batches) if self._rows is not None else None
            state, done, self._failed = _state(running, now), running.done(), running.failed
        except UNREACHABLE:
            living, rows, state = False, None, "ended"
            done = f"{running.totals.line()}; Spark has been stopped"
        notes = [self._note] if self._note and living else []
        if living and self._button is None:
            notes.append(self._how_to_stop())
        return Picture(
            running.name,
            state,
            now,
            living,
            done,
            running.totals.hour().points,
            notes,
            # Where the cell waits it ends with the error.
            self._failed.render() if self._failed is not None and not self.waited_for else None,
            rows,
        )

    def _how_to_stop(self) -> str:
        if self.waited_for:
            return "Interrupt the cell to stop it."
        return f"%wjoin STOP QUERY {quoted_if_needed(self.running.name)} stops it."

    def _close_button(self, screen: CellOutputs) -> None:
        if self._button is not None:
            self._button.close()
            screen.replace(self._button_output, "")
            self._button = None

    def _forget_rows(self) -> None:
        if self._rows is not None:
            with contextlib.suppress(*UNREACHABLE):
                self._rows.drop()


def _state(running: Running, now: datetime) -> str:
    """Return what a query is doing, in a word; one that rests between two micro-batches is running."""
    since = running.totals.idle_since
    if running.state == "idle" and since is not None and (now - since).total_seconds() < _IDLE_SECONDS:
        return "running"
    return running.state


class LiveCells:
    """The queries that cells show, each drawn anew every second by one thread."""

    def __init__(self, screen: CellOutputs) -> None:
        self._screen = screen
        self._cells: list[LiveCell] = []
        self._shown = threading.Event()
        self._thread: threading.Thread | None = None

    def of(self, running: Running) -> LiveCell | None:
        """Return the cell of a query, None where it was not started by one."""
        return next((each for each in self._cells if each.running is running), None)

    def follow(
        self,
        running: Running,
        parameters: Mapping[str, Any],
        *,
        rows: SelectRows | None = None,
        note: str = "",
        waited_for: bool = False,
    ) -> LiveCell:
        """Show a query in the cell that runs now, and from now on there only."""
        cell = self.of(running)
        if cell is None:
            cell = LiveCell(running, parameters, rows, self._screen.cell_id)
            self._cells = [each for each in self._cells if not each.ended.is_set()] + [cell]
        cell.show(self._screen, note, waited_for)
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_drawing, name="wjoin-notebook", daemon=True)
            self._thread.start()
        self._shown.set()
        return cell

    def draw(self) -> None:
        """Show how the queries are now."""
        for each in self._cells:
            each.draw(self._screen)

    def _keep_drawing(self) -> None:
        while True:
            self._shown.wait()
            self._shown.clear()
            while not all(each.ended.is_set() for each in self._cells):
                self.draw()
                time.sleep(_TICK_SECONDS)


def _stop_button(running: Running) -> Any:
    """Return a button that stops a query, None where ipywidgets is not installed."""
    try:
        from ipywidgets import Button
    except ImportError:
        return None
    button = Button(description="Stop", icon="stop", tooltip=f"Stop the query {running.name}")

    def stop(_: Any) -> None:
        button.disabled, button.description = True, "Stopping …"
        # It waits for Spark, and the kernel shall not.
        threading.Thread(target=running.stop, name="wjoin-stop", daemon=True).start()

    button.on_click(stop)
    return button
