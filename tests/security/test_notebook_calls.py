"""What a page of a notebook can have Python do: press the button that stops a query, and nothing else."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from ipywidgets import Button

from tests.security.test_markup import AT, MARKUP, Tags
from wjoin.measured.followed import Followed
from wjoin.notebook.drawn import Picture
from wjoin.notebook.live_cells import _stop_button
from wjoin.notebook.screen import _bundle
from wjoin.queries.running import Running


class Query(SimpleNamespace):
    """A query that runs until it is stopped."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name, runId=name, name=name, isActive=True, ended=threading.Event())
        self.lastProgress, self.recentProgress = None, []

    def stop(self) -> None:
        self.isActive = False
        self.ended.set()

    def exception(self) -> None:
        """It does not fail."""


def button(name: str) -> tuple[Button, Query]:
    """Return the button of a query of a name, and the query."""
    query = Query(name)
    nowhere = SimpleNamespace(of=str)
    return _stop_button(Running(Followed(query), "", nowhere, nowhere, name)), query


def sent(where: Button, data: dict[str, Any]) -> None:
    """Send a message as a page does."""
    where._handle_msg({"content": {"data": data}, "buffers": []})


@pytest.mark.parametrize(
    "data",
    [
        {"method": "custom", "content": {"event": "eval", "code": "1/0"}},
        {"method": "custom", "content": {"event": ["click"], "name": "other"}},
        {"method": "custom", "content": {}},
        {"method": "update", "state": {"_click_handlers": "x", "_msg_callbacks": [], "__class__": "x"}},
        {"method": "update", "state": {"description": MARKUP[0], "tooltip": MARKUP[2], "_model_name": "x"}},
        {"method": "request_state"},
        {"method": "__import__('os').abort()"},
    ],
)
def test_messages_of_a_page_stop_nothing(data: dict[str, Any]) -> None:
    pressed, query = button("mine")
    sent(pressed, data)
    assert query.isActive
    sent(pressed, {"method": "custom", "content": {"event": "click"}})
    assert query.ended.wait(10)


def test_a_click_stops_the_query_of_its_button_whatever_it_says() -> None:
    pressed, mine = button("mine")
    _, other = button("other")
    sent(
        pressed, {"method": "custom", "content": {"event": "click", "name": "other", "description": "other"}}
    )
    assert mine.ended.wait(10)
    assert other.isActive


@pytest.mark.parametrize("text", MARKUP)
def test_outputs_have_nothing_that_calls(text: str) -> None:
    """No script, no form, no frame: what a page may run or send comes from the front end alone."""
    shown = _bundle(Picture(text, text, AT, True, text, (), (text,), text, None))
    assert set(shown) == {"text/plain", "text/html"}
    found = Tags()
    found.feed(shown["text/html"])
    assert not found.tags & {"script", "form", "input", "button", "iframe", "object", "embed", "link", "meta"}
    assert not [
        name for name in found.attributes if name.startswith("on") or name in ("href", "src", "action")
    ]
    pressed, _ = button(text)
    # The front end shows these as text.
    assert pressed.description == "Stop" and pressed.tooltip.endswith(text)
