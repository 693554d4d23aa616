"""The commands of the shell itself: they begin with a dot."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files

from wjoin.grammar.errors import WJoinError

EXAMPLES = ("join", "stream", "query")
"""The examples that ``.example`` runs: files beside this one."""

_COMMANDS: Mapping[str, tuple[str, str]] = {
    ".help": ("", "this text"),
    ".example": ("join|stream|query", "show and run an example"),
    ".read": ("FILE.sql", "run the statements of a file"),
    ".tables": ("", "list streams, sinks, tables and views"),
    ".rows": ("N", "set how many rows of a result are fetched"),
    ".once": ("on|off", "read streams up to their current end, then stop"),
    ".param": ("NAME=VALUE", "set the value of :NAME"),
    ".udf": ("FILE.py", "register the predicates of a file"),
    ".timer": ("on|off", "show how long each statement takes"),
    ".pager": ("on|off", "show long results by $PAGER, or less"),
    ".log": ("", "show the end of Spark's log"),
    ".quit": ("", "leave and stop the running queries"),
}
_OTHER_NAMES = {".exit": ".quit", ".q": ".quit", ".h": ".help", ".source": ".read", ".schema": ".tables"}
_AS_STATEMENTS = {"quit": ".quit", "exit": ".quit", "help": ".help"}
NAMES = tuple(_COMMANDS)
"""The commands, as they are listed."""

_KEYS = (
    ("Enter", "run a statement that ends with ; or start a new line"),
    ("Alt-Enter", "start a new line anyway"),
    ("Tab", "complete"),
    ("Up, Ctrl-R", "earlier statements (a leading blank keeps one out)"),
    ("Ctrl-C", "cancel the statement, or clear the line"),
    ("Ctrl-X Ctrl-E", "edit it in $EDITOR"),
    ("Ctrl-D", "leave"),
)


@dataclass(frozen=True)
class Command:
    """A command by its full name, and what follows it."""

    name: str
    argument: str


def read_command(text: str) -> Command | None:
    """Return the command that a line is, None where it is none. Raises WJoinError WJ606 for an unknown one.

    ``quit``, ``exit`` and ``help`` are commands without a dot, too.
    """
    line = text.strip()
    if name := _AS_STATEMENTS.get(line.rstrip("; ").lower()):
        return Command(name, "")
    if not line.startswith("."):
        return None
    word, _, argument = line.partition(" ")
    name = _OTHER_NAMES.get(word.rstrip(";").lower(), word.rstrip(";").lower())
    if name not in _COMMANDS:
        near = get_close_matches(name, _COMMANDS, n=1)
        remedy = f"did you mean {near[0]}?" if near else ".help lists the commands"
        raise WJoinError("WJ606", f"there is no command {word}", help=remedy)
    return Command(name, argument.strip().rstrip(";").strip())


def is_command(text: str) -> bool:
    """Return whether a line is meant as a command, known or not."""
    return text.lstrip().startswith(".") or text.strip().rstrip("; ").lower() in _AS_STATEMENTS


def usage(command: Command) -> WJoinError:
    """Return the error of a command that cannot be carried out as it is written."""
    asked, what = _COMMANDS[command.name]
    return WJoinError("WJ606", f"{command.name} takes {asked}", help=f"{command.name} {asked}: {what}")


def help_text(keys: bool) -> str:
    """Return what ``.help`` shows; with the keys where there are any."""
    heads = {name: f"{name} {asked}".rstrip() for name, (asked, _) in _COMMANDS.items()}
    wide = max(map(len, heads.values()))
    lines = ["Statements are Spark SQL and wjoin's, and end with a semicolon.", "", "Commands"]
    lines += [f"  {heads[name]:{wide}}  {what}" for name, (_, what) in _COMMANDS.items()]
    if keys:
        lines += ["", "Keys", *(f"  {key:{wide}}  {what}" for key, what in _KEYS)]
    statements = (
        ("SHOW STREAMS;", "what is declared; DESCRIBE STREAM s;"),
        ("EXPLAIN SELECT …;", "how a join is planned; or EXPLAIN COST …;"),
        ("SHOW QUERIES;", "the queries in the background; STOP QUERY q;"),
    )
    lines += ["", "Try", *(f"  {each:{wide}}  {what}" for each, what in statements)]
    return "\n".join(lines)


def example(command: Command) -> str:
    """Return the script of an example. Raises WJoinError WJ606 where there is none of that name."""
    if command.argument.lower() not in EXAMPLES:
        raise usage(command)
    return (files("wjoin.shell") / f"{command.argument.lower()}.sql").read_text("utf-8")
