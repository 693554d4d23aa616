"""The options of the magics: what stands between ``%wjoin`` or ``%%wjoin`` and the statements."""

import re
from dataclasses import dataclass, replace
from typing import Any

from wjoin.grammar.durations import count_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.suggestions import suggestion

USAGE = """\
%%wjoin [options] [NAME <<]      statements in the lines below, separated by semicolons
%wjoin [options] [NAME <<] ...   statements in this line; NAME << can come before options

NAME <<             save the last result in the Python variable NAME, without showing it
-o NAME             save it and show it
--once              streams: process everything in the sources, then exit
--limit N           rows of a table to show (20)
--checkpoint DIR    the folder of the checkpoints, one for each INSERT INTO
--trigger TIME      interval between micro-batches ('10 seconds')
--background        keep a SELECT over streams running while other cells run
--restart           stop the query that this cell started, and start it again
--web               show the live page of all queries, with EXPLAIN's drawings
--session           return the wjoin.Session that the cells use
--help              this text

:name in a statement is the Python variable of that name. An INSERT INTO keeps running until STOP QUERY name.
A SELECT over streams runs until the cell is interrupted."""


@dataclass(frozen=True)
class CellOptions:
    """What a cell's first line asks for; ``keep`` is the variable for the last result, ``show`` shows it."""

    once: bool = False
    limit: int = 20
    checkpoint: str | None = None
    trigger: str | None = None
    background: bool = False
    restart: bool = False
    web: bool = False
    session: bool = False
    help: bool = False
    keep: str | None = None
    show: bool = True


_SWITCHES = ("once", "background", "restart", "web", "session", "help")
_FLAGS = {f"--{name}": name for name in _SWITCHES} | {"-h": "help"}
_VALUES = {f"--{name}": name for name in ("limit", "checkpoint", "trigger")} | {"-o": "keep"}
_OPTION = re.compile(r"\s*(-[A-Za-z]|--[A-Za-z][\w-]*)(?=[\s=]|$)")
_VALUE = re.compile(r"""[\s=]\s*(?:"([^"]*)"|'([^']*)'|([^\s"']\S*))(?=\s|$)""")
_KEPT = re.compile(r"\s*(\w+)\s*<<(?=\s|$)")


def read_options(line: str) -> tuple[CellOptions, str]:
    """Return the options at the beginning of a line, and what follows them.

    Raises WJoinError WJ603 for an option that is unknown or has no good value.
    """
    options, place = CellOptions(), 0
    while found := _OPTION.match(line, place) or (_KEPT.match(line, place) if options.show else None):
        name, place = found[1], found.end()
        if found.re is _KEPT:
            options = replace(options, **_read("NAME <<", name), show=False)
        elif name in _FLAGS:
            flag: dict[str, Any] = {_FLAGS[name]: True}
            options = replace(options, **flag)
        elif name in _VALUES:
            value = _VALUE.match(line, place)
            if value is None:
                raise WJoinError("WJ603", f"{name} has no value", help="%wjoin --help lists the options")
            place = value.end()
            options = replace(
                options, **_read(name, next(each for each in value.groups() if each is not None))
            )
        else:
            remedy = suggestion(name, [*_FLAGS, *_VALUES]) or "%wjoin --help lists the options"
            raise WJoinError("WJ603", f"%wjoin has no option {name}", help=remedy)
    return options, line[place:].lstrip()


def _read(name: str, text: str) -> dict[str, Any]:
    """Return the field that an option sets."""
    if name == "--limit":
        limit = count_of(text)
        if limit is None:
            raise WJoinError("WJ603", f"--limit is {text}", help="give a number of rows from 1")
        return {"limit": limit}
    if name in ("-o", "NAME <<"):
        if not text.isidentifier():
            raise WJoinError("WJ603", f"{text} is not a variable name", help="write -o NAME, or NAME <<")
        return {"keep": text}
    return {_VALUES[name]: text}
