"""Colours of what the shell prints: errors, EXPLAIN, remarks."""

import re
from dataclasses import dataclass

_CODES = {
    "error": "31;1",
    "warning": "33;1",
    "title": "1",
    "dim": "2",
    "caret": "31;1",
    "help": "36",
    "good": "32",
}
_HEAD = re.compile(r"^(error|warning)(\[\w+\])?: ")
_CARETS = re.compile(r"^( *\| *)(\^+)$")


@dataclass(frozen=True)
class Paint:
    """Gives texts a colour, or leaves them as they are where the terminal has none or the user wants none."""

    coloured: bool

    def __call__(self, text: str, style: str) -> str:
        """Return a text in a style: error, warning, title, dim, caret, help or good."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.coloured and text else text

    def diagnostic(self, text: str) -> str:
        """Return an error or a warning, as it is rendered, with its head, carets and help in colours."""
        return "\n".join(map(self._line, text.splitlines()))

    def _line(self, line: str) -> str:
        if found := _HEAD.match(line):
            return self(found[1] + (found[2] or ""), found[1]) + ": " + self(line[found.end() :], "title")
        if found := _CARETS.match(line):
            return found[1] + self(found[2], "caret")
        if line.startswith("help: "):
            return self("help", "help") + line.removeprefix("help")
        return line
