"""What a cell shows, by whatever front end there is: a notebook, a console, a terminal."""

import itertools
import threading
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

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


class Screen:
    """The outputs of IPython; ``living`` tells whether an output can be replaced after it was shown."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        # A terminal would print each of them anew.
        self.living = hasattr(shell, "kernel")
        self._numbers = itertools.count()
        self._of_process = uuid.uuid4().hex
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
        self._publish(_bundle(what))

    def show_living(self, what: Shown | str) -> str:
        """Show an output that will be replaced; return its name."""
        return self._named(_bundle(what))

    def show_widget(self, widget: Any, text: str) -> str:
        """Show a widget of ipywidgets, or a text where the front end has none; return the output's name."""
        model = {"model_id": widget.model_id, "version_major": 2, "version_minor": 0}
        return self._named({"text/plain": text, _WIDGET: model})

    def replace(self, name: str, what: Shown | str, *, last: bool = False) -> None:
        """Replace an output, from any thread, where that can be; elsewhere the ``last`` one is shown."""
        if self.living:
            self._publish(_bundle(what), transient={"display_id": name}, update=True)
        elif last:
            self.show(what)

    def _named(self, bundle: Mapping[str, Any]) -> str:
        name = f"wjoin-{self._of_process}-{next(self._numbers)}"
        self._publish(bundle, transient={"display_id": name})
        return name

    def _publish(self, bundle: Mapping[str, Any], **how: Any) -> None:
        with self._publishing:
            self._shell.display_pub.publish(data=dict(bundle), **how)


def _bundle(what: Shown | str) -> dict[str, str]:
    if isinstance(what, str):
        return {"text/plain": shown_lines(what)}
    return {"text/plain": shown_lines(what.text()), "text/html": str(what.html())}
