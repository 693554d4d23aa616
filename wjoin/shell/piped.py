"""Statements that are piped into the shell: each runs when it is there, and prints as under ``wjoin run``."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wjoin.commands.carried_out import How, carry_out
from wjoin.commands.live import follow
from wjoin.grammar.parser import unended
from wjoin.shell.commands import is_command
from wjoin.shell.shell import Choices, Leave, Shell

if TYPE_CHECKING:
    from wjoin.grammar.statement_kinds import Statement
    from wjoin.session import Session


class PipedShell(Shell):
    """A shell whose statements come from a pipe or a file, and whose results go to standard output."""

    def __init__(self, choices: Choices, session: "Session") -> None:
        super().__init__(choices)
        self._session = session

    def session(self) -> "Session":
        """Return the session."""
        return self._session

    def perform(self, text: str, statement: "Statement") -> None:
        """Carry out a statement; a query into a sink works off what there is, then ends."""
        how = How(True, self.choices.rows, self.choices.checkpoint)
        asked = self._session.context.asked(text, dict(self.choices.params))
        started = carry_out(asked, statement, how)
        follow(started, sys.stdout, False)

    def say(self, text: str) -> None:
        """Print what a command answers."""
        print(text, flush=True)

    def enter_lines(self, lines: Iterable[str]) -> None:
        """Carry out lines as they come. Raises WJoinError at the first statement that fails."""
        waiting = ""
        try:
            for line in lines:
                if not waiting.strip() and is_command(line):
                    self.enter(line)
                    continue
                waiting += line
                # A statement can only be ended by a line that has a semicolon.
                if ";" in line and (end := unended(waiting)):
                    self.enter(waiting[:end])
                    waiting = waiting[end:]
            self.enter(waiting)
        except Leave:
            return
