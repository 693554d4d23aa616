"""The magics ``%wjoin`` and ``%%wjoin``."""

from dataclasses import dataclass
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from wjoin.commands.complaints import printed_warnings
from wjoin.grammar.errors import WJoinError
from wjoin.notebook.cell_options import USAGE, read_options
from wjoin.notebook.screen import CellOutputs
from wjoin.notebook.shown_errors import shown
from wjoin.planner.explain.markup import Markup, join, tag


@dataclass(frozen=True)
class LivePage:
    """The page that a session serves, to be shown in a cell."""

    web: Any

    def text(self) -> str:
        """Return where it is."""
        return f"The live page is at {self.web.url}"

    def html(self) -> str:
        """Return a frame with it, and where it is for front ends that show no frames."""
        return join(tag("p", self.text()), Markup(self.web._repr_html_()))


@magics_class
class WJoinMagics(Magics):
    """W-join SQL in cells. What needs Spark is imported with the first statement."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell=shell)
        self._screen = CellOutputs(shell)
        self._sessions: Any = None
        self._live: Any = None

    shell: Any

    @no_var_expand
    @line_cell_magic
    def wjoin(self, line: str, cell: str | None = None) -> Any:
        """Run statements of W-join SQL, and show their rows; ``%wjoin --help`` says more."""
        # What counts is the run's number, which the shell's own count has left already in some versions.
        name = f"cell [{len(self.shell.user_ns['In']) - 1}]"
        with printed_warnings(name):
            try:
                return self._run(line, cell, name)
            except WJoinError as error:
                problem = shown(error, name)
        raise problem

    def _run(self, line: str, cell: str | None, name: str) -> Any:
        options, rest = read_options(line)
        # The lines of errors are those of the cell, the first of which is the magic's own.
        text = rest if cell is None else f"{rest}\n{cell}"
        if options.help or not (text.strip() or options.session or options.web):
            self._screen.show(USAGE)
            return None
        session = self._session()
        if options.web:
            self._screen.show(LivePage(session.serve_web()))
        if options.session:
            return session
        if not text.strip():
            return None
        from wjoin.notebook.cell import Cell

        run = Cell(session, text, name, options, self.shell.user_ns, self._screen, self._live)
        made = run.run()
        if options.keep is not None:
            self.shell.user_ns[options.keep] = made
        return None

    def _session(self) -> Any:
        if self._sessions is None:
            from wjoin.notebook.live_cells import LiveCells
            from wjoin.notebook.sessions import Sessions

            self._sessions = Sessions(self._screen)
            self._live = LiveCells(self._screen)
        return self._sessions.session(self.shell.user_ns)
