"""What has been typed, carried out: commands of the shell, and statements one after the other."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wjoin.commands.arguments import read_file
from wjoin.grammar.durations import count_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.shell import commands
from wjoin.shell.commands import Command, read_command
from wjoin.shell.known import relations_of, sinks_of
from wjoin.shell.paint import Paint
from wjoin.shell.tables import TextRows, table

if TYPE_CHECKING:
    from wjoin.grammar.statement_kinds import Statement
    from wjoin.session import Session

SOURCE = "<sql>"
_LOG_LINES = 40
_SWITCH = {"on": True, "off": False}


class Leave(Exception):  # noqa: N818 (nothing went wrong)
    """The user leaves the shell."""


@dataclass(frozen=True)
class Choices:
    """What a user of the shell has chosen; ``rows`` are fetched of a result, ``params`` are for :NAME."""

    rows: int
    once: bool
    checkpoint: str | None = None
    timer: bool = True
    pager: bool = True
    params: dict[str, str] = field(default_factory=dict)


class Shell(ABC):
    """A shell, whatever it reads from and shows its results on."""

    has_keys = False
    """Whether it is typed at a terminal that has keys such as Tab."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    @abstractmethod
    def session(self) -> "Session":
        """Return the session; wait for Spark where that has not been started yet."""

    @abstractmethod
    def perform(self, text: str, statement: "Statement") -> None:
        """Carry out one statement of a text. Raises WJoinError."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Show what a command answers."""

    def enter(self, text: str, name: str = SOURCE) -> None:
        """Carry out what has been typed, or the statements of the file ``name``.

        Raises WJoinError at the first statement that fails, placed in the text, and Leave.
        """
        if name == SOURCE and (command := read_command(text)) is not None:
            self._command(command)
            return
        statements = parse_script(text, name)
        if not statements:
            return
        # Spark may still be starting without it.
        from wjoin.statements.sharing import in_sets

        context = self.session().context
        context.queries.begin_script()
        for statement in in_sets(context.asked(text, dict(self.choices.params)), statements):
            try:
                self.perform(text, statement)
            except WJoinError as error:
                raise (error if error.text is None else error.within(error.text, name)) from None

    def _command(self, command: Command) -> None:
        """Carry out a command of the shell. Raises WJoinError WJ606 and WJ608, and Leave."""
        argument = command.argument
        match command.name:
            case ".quit":
                raise Leave
            case ".help":
                self.say(commands.help_text(keys=self.has_keys))
            case ".example":
                text = commands.example(command)
                self.say(text.rstrip())
                self.enter(text, f"example {argument.lower()}")
            case ".read":
                self._read(command)
            case ".tables":
                self.say(self._listed())
            case ".log":
                self.say(self._log())
            case ".udf":
                self._register(command)
            case ".rows":
                rows = count_of(argument)
                if rows is None:
                    raise commands.usage(command)
                self.choices = replace(self.choices, rows=rows)
            case ".param":
                name, equals, value = argument.partition("=")
                if not equals:
                    raise commands.usage(command)
                params = {**self.choices.params, name.strip().lstrip(":"): value.strip()}
                self.choices = replace(self.choices, params=params)
            case _:
                if argument.lower() not in _SWITCH:
                    raise commands.usage(command)
                # The command of a switch has its name: .once, .timer, .pager.
                switched: dict[str, Any] = {command.name[1:]: _SWITCH[argument.lower()]}
                self.choices = replace(self.choices, **switched)

    def _read(self, command: Command) -> None:
        if not command.argument:
            raise commands.usage(command)
        path = str(Path(command.argument.strip("'\"")).expanduser())
        self.enter(read_file(path), path)

    def _register(self, command: Command) -> None:
        from wjoin.joins.predicates import load

        if not command.argument:
            raise commands.usage(command)
        self.session()
        load(command.argument.strip("'\""))

    def _listed(self) -> str:
        """Return a table of what can be read and written by name."""
        session = self.session()
        rows = [(each.name, each.what) for each in (*relations_of(session), *sinks_of(session))]
        shown = TextRows(("name", "kind"), (False, False), tuple(sorted(rows)))
        return "\n".join(table(shown, Paint(False))) if rows else "nothing is declared yet"

    def _log(self) -> str:
        """Return the end of Spark's log."""
        path = self.session().spark_log
        if path is None:
            return "Spark's log goes to the terminal"
        lines = path.read_text("utf-8", errors="replace").splitlines()
        return "\n".join([*lines[-_LOG_LINES:], f"({path})"])
