"""Cells in JupyterLab, in a real browser: tables, plans, errors, live ones, the button, an ended kernel."""

import contextlib
import re
from collections.abc import Iterator

import pytest

from tests.browser import chromium
from tests.notebook.pages import Page, jupyterlab, write_notebook
from tests.notebook.test_magics import JOIN, LIVE, STREAMS, VIEWS

# Kernels start, each with a Spark of its own.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

LOAD, _, TABLE, PLAN, ERROR, RATES, INSERT, SELECT = range(8)
CELLS = [
    "%load_ext wjoin",
    VIEWS,
    f"%%wjoin\nSELECT A.obj_id, A.ts AS at_1, 'some words' AS words, NULL AS n {JOIN.format('5 SECONDS')}",
    f"%%wjoin\nEXPLAIN SELECT A.obj_id {JOIN.format('5 SECONDS')}",
    f"%%wjoin\nSELECT A.obj_id {JOIN.format('5')}",
    STREAMS.strip(),
    "%%wjoin --checkpoint checkpoints\n"
    "CREATE SINK IF NOT EXISTS pairs USING parquet OPTIONS (path 'out/pairs');\n"
    f"INSERT INTO pairs {LIVE.format('5 SECONDS')}",
    f"%%wjoin\n{LIVE.format('5 SECONDS')}",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, jupyter_environment: dict[str, str]) -> Iterator[Page]:
    """A notebook whose first cells have been run."""
    folder = tmp_path_factory.mktemp("lab")
    write_notebook(folder / "cells.ipynb", CELLS)
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(jupyterlab(folder, jupyter_environment))
        browser = chromium(tmp_path_factory.mktemp("chromium"))
        stack.callback(browser.quit)
        opened = Page(browser, address)
        opened.open("cells.ipynb", len(CELLS))
        for number in range(TABLE):
            opened.run(number)
        yield opened


def results(page: Page, number: int) -> int:
    """Return how many results a live cell tells of."""
    found = re.search(r"([\d,]+) results", page.text(number))
    return int(found[1].replace(",", "")) if found else 0


def test_a_table(page: Page) -> None:
    page.run(TABLE)
    heads = [each.text for each in page.found(TABLE, ".wjoin-rows th")]
    assert heads == ["obj_id", "at_1", "words", "n"]
    cells = [each.text for each in page.found(TABLE, ".wjoin-rows td")]
    assert cells == ["1", "2024-05-01 12:00:00", "some words", "NULL"]
    # JupyterLab's own style has all of them at the right.
    sides = [each.value_of_css_property("text-align") for each in page.found(TABLE, ".wjoin-rows td")]
    assert sides == ["right", "left", "left", "left"]


def test_explain_is_drawn(page: Page) -> None:
    page.run(PLAN)
    assert len(page.found(PLAN, ".wjoin-plan svg.picture")) >= 3
    assert "Joins A" in page.text(PLAN)


def test_an_error_has_a_caret_and_no_traceback(page: Page) -> None:
    page.run(ERROR)
    said = page.text(ERROR).splitlines()
    assert said[0] == "error[WJ304]: 5 has no unit, but the streams' event time is a timestamp"
    assert said[4].strip(" |") == "^"
    assert "Traceback" not in page.text(ERROR)


def test_a_live_cell_moves_and_its_button_stops_the_query(page: Page) -> None:
    page.run(RATES)
    page.run(INSERT)
    page.until(lambda: results(page, INSERT) > 0, "results")
    some, drawn = results(page, INSERT), page.line(INSERT)
    page.until(lambda: results(page, INSERT) > some and page.line(INSERT) != drawn, "more results")
    assert len(page.found(INSERT, ".wjoin-live svg")) == 4
    # It is run again: the same query, and one live cell.
    page.run(INSERT)
    page.until(lambda: results(page, INSERT) > some, "the same query again")
    assert "nothing was started" in page.text(INSERT)
    assert len(page.found(INSERT, ".wjoin-live")) == 1
    # Other cells run meanwhile, and what they do leaves it alone.
    page.begin(SELECT)
    page.until(lambda: re.search(r"micro-batch \d+: ", page.text(SELECT)), "rows of the SELECT")
    assert page.found(SELECT, ".wjoin-rows td")
    page.interrupt()
    page.until(lambda: "stopped" in page.text(SELECT), "the end of the SELECT")
    later = results(page, INSERT)
    page.until(lambda: results(page, INSERT) > later, "results after the interrupt")
    (button,) = page.found(INSERT, "button.jupyter-button")
    button.click()
    page.until(lambda: "stopped" in page.text(INSERT), "the end of the query")
    page.until(lambda: not page.found(INSERT, "button.jupyter-button"), "the end of the button")
    assert not page.found(INSERT, ".living")


def test_no_live_cell_outlives_its_kernel_and_the_query_goes_on_in_the_next(page: Page) -> None:
    for _ in range(2):
        for number in (LOAD, RATES, INSERT):
            page.run(number)
        page.until(lambda: page.found(INSERT, ".living") and results(page, INSERT) > 0, "the query")
        page.restart()
        # What is out of sight stands still.
        page.show(INSERT)
        page.until(lambda: ended(page), "the word that it ended")


def ended(page: Page) -> bool:
    """Return whether a live cell tells that its query has ended: by a last word, or the lack of one."""
    stale = page.found(INSERT, ".stale")
    if not stale:
        return bool(page.found(INSERT, ".state.ended"))
    gray = page.found(INSERT, ".done")[0].value_of_css_property("opacity") == "0.5"
    return gray and stale[0].text.startswith("No update since 2")
