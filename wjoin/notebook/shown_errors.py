"""Errors as a cell shows them: wjoin's own text with place and remedy, without Python's traceback."""

from wjoin.grammar.errors import WJoinError


class CellError(WJoinError):
    """A WJoinError of a cell. It ends the cell, and a run of all cells, as any error does."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return self.render().splitlines()


class Interrupted(KeyboardInterrupt):
    """A cell was interrupted while it ran a statement."""

    def _render_traceback_(self) -> list[str]:
        return ["interrupted"]


def shown(error: WJoinError, source_name: str) -> CellError:
    """Return an error as one of a cell; a parameter without a value is a variable that is not there."""
    remedy = error.help
    if error.code == "WJ212" and "pass it to" in remedy:
        remedy = "set a Python variable of that name in a cell before"
    return CellError(
        error.code, error.message, span=error.span, text=error.text, help=remedy, source_name=source_name
    )
