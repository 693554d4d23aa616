"""What a cell shows, by whatever front end there is: a notebook, a console, a terminal."""

import threading
from collections.abc import Mapping
from typing import Any, Protocol

from IPython.display import display

from wjoin.grammar.shown import shown_lines

_WIDGET = "application/vnd.jupyter.widget-view+json"


class Shown(Protocol):
    """What can be shown as HTML and as text."""

    def text(self) -> str:
        """Return it for front ends that show text only."""
        ...

    def html(self) -> str:
        """Return it as a piece of HTML."""
        ...


class CellOutputs:
    """The outputs of IPython; ``living`` tells whether an output can be replaced after it was shown."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        # A terminal would print each of them anew.
        self.living = hasattr(shell, "kernel")
        self._publishing = threading.Lock()

    @property
    def cell_id(self) -> str | None:
        """The front end's name of the cell that runs, None where it gives none."""
        if not self.living:
            return None
        parent = self._shell.kernel.get_parent()
        found = parent.get("metadata", {}).get("cellId") if parent else None
        return str(found) if found is not None else None

    def show(self, what: Shown | str) -> None:
        """Show a new output."""
        self.show_living(what)

    def show_living(self, what: Shown | str) -> Any:
        """Show an output that will be replaced; return what it is replaced by."""
        return self._displayed(_bundle(what))

    def show_widget(self, widget: Any, text: str) -> Any:
        """Show a widget of ipywidgets, or a text where the front end has none; return as ``show_living``."""
        model = {"model_id": widget.model_id, "version_major": 2, "version_minor": 0}
        return self._displayed({"text/plain": text, _WIDGET: model})

    def replace(self, shown: Any, what: Shown | str, *, last: bool = False) -> None:
        """Replace an output, from any thread, where that can be; elsewhere the ``last`` one is shown."""
        if self.living:
            with self._publishing:
                shown.update(_bundle(what), raw=True)
        elif last:
            self.show(what)

    def _displayed(self, bundle: Mapping[str, Any]) -> Any:
        with self._publishing:
            given = dict(bundle)
            return display(given, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # has no types


def _bundle(what: Shown | str) -> dict[str, str]:
    if isinstance(what, str):
        return {"text/plain": shown_lines(what)}
    return {"text/plain": shown_lines(what.text()), "text/html": str(what.html())}
