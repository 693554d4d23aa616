"""The page of the live page in a real browser: numbers move, lines are drawn, by keyboard, in the dark."""

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import chromium, color, contrast, emulate, luminance
from tests.explain.drawn import HOSTILE
from tests.web.shown import BEGAN, CHAIN, STAR, batches, known, report
from wjoin.web import page_answers
from wjoin.web.page_access import Address
from wjoin.web.page_server import bound

# Every test loads the page; the browser starts once.
pytestmark = [pytest.mark.thorough, pytest.mark.slow]

PATIENCE = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


class Shown:
    """Queries that do a micro-batch more whenever somebody asks; others can be added."""

    def __init__(self):
        self.batches = 20
        self.more = []

    def read(self):
        self.batches += 1
        moving = known("pairs", CHAIN, batches(self.batches, stages=2))
        return [replace(each, clock=self.clock) for each in (moving, *self.more)]

    @property
    def clock(self):
        return BEGAN + self.batches + 1


@pytest.fixture
def shown(monkeypatch):
    """Queries whose clock stands at the end of their last micro-batch."""
    queries = Shown()

    class Clock:
        @staticmethod
        def time():
            return queries.clock

    monkeypatch.setattr(page_answers, "time", Clock)
    return queries


@pytest.fixture
def show(browser, shown):
    """Return a function that serves the queries and loads the page."""
    served = []

    def load(path="", token=None, scheme="light", motion="no-preference", width=1280, ready=True):
        web = bound(Address(port=0), token).begin(lambda: shown.read(), lambda: None)
        served.append(web)
        emulate(browser, color_scheme=scheme, reduced_motion=motion)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(web.url + path)
        if ready:
            until(lambda: places(browser) and "–" not in places(browser).values())
        browser.web = web
        return browser

    yield load
    for each in served:
        each.close()


def until(condition):
    return WebDriverWait(None, PATIENCE, 0.1).until(lambda _: condition())


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def places(browser):
    script = "return [...document.querySelectorAll('[data-live]')].map(e => [e.dataset.live, e.textContent])"
    return dict(browser.execute_script(script))


def points(browser, chart):
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.getAttribute('d'))"
    paths = browser.execute_script(script, f"[data-chart={chart}] svg path")
    return [each.count("L") + each.count("M") for each in paths]


def captions(browser):
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".chart figcaption")]


@pytest.mark.long
def test_numbers_move_and_lines_are_drawn(show, shown):
    browser = show()
    assert text(browser, "#name") == "pairs"
    assert len(places(browser)) == 3 * 3 + 2 * 2 + 1
    before, drawn = text(browser, ".tile:last-child span"), points(browser, "rows")
    assert len(drawn) == 3
    assert min(drawn) >= 20
    until(lambda: text(browser, ".tile:last-child span") != before)
    until(lambda: min(points(browser, "rows")) > max(drawn) + 2)
    assert all(
        number > 0
        for chart in ("lag", "compared", "matched", "kept", "bytes")
        for number in points(browser, chart)
    )
    assert len(points(browser, "parts")) == 5
    rows = browser.execute_script("return document.getElementById('streams').tBodies[0].rows.length")
    assert rows == 3
    assert "comparisons a row" in text(browser, "#compared")
    assert browser.get_log("browser") == []


def test_lines_lie_inside_their_drawing(show):
    browser = show()
    script = """
    return [...document.querySelectorAll('.chart svg')].map(svg => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('path, text, line')].map(each => {
        const box = each.getBoundingClientRect();
        return [each.outerHTML, box.left - frame.left, frame.right - box.right, box.top - frame.top,
                frame.bottom - box.bottom];
      });
    }).flat();
    """
    assert not [each for each in browser.execute_script(script) if min(each[1:]) < -2]


@pytest.mark.long
def test_all_can_be_reached_and_used_with_the_keyboard(show, shown):
    shown.more = [known("other", STAR, batches(5))]
    browser = show()
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#queries a")) == 2)
    body = browser.find_element(By.TAG_NAME, "body")
    reached = []
    body.send_keys(Keys.TAB)
    focused = """
    const node = document.activeElement;
    return node === document.body ? '' : (node.id || node.getAttribute('aria-label') || node.textContent);
    """
    while (name := browser.execute_script(focused)) and name not in reached[:1]:
        reached.append(name)
        assert (
            browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
        )
        browser.switch_to.active_element.send_keys(Keys.TAB)
        assert len(reached) < 60
    assert reached[0] == "pause"
    assert "pairs" in reached[1]
    assert "other" in reached[2]
    sliders = [each for each in reached if each.endswith(": moment")]
    assert sliders[0] == "Rows read: moment"
    assert len(sliders) == 9
    assert "Time of tasks per micro-batch: moment" in sliders
    assert {"Streams", "Estimated and actual", "How it is planned (EXPLAIN)"} <= {*reached}
    script = """
    const controls = [...document.querySelectorAll('button, a, summary, [role=slider]')];
    return controls.filter(each => each.tabIndex < 0).length;
    """
    assert browser.execute_script(script) == 0


def test_keys_move_the_mark_in_all_drawings(show):
    browser = show()
    browser.find_element(By.ID, "pause").click()
    slider = browser.find_element(By.CSS_SELECTOR, "[data-chart=rows] [role=slider]")
    browser.execute_script("arguments[0].focus()", slider)
    newest = int(slider.get_attribute("aria-valuemax"))
    slider.send_keys(Keys.ARROW_LEFT)
    assert int(slider.get_attribute("aria-valuenow")) == newest
    slider.send_keys(Keys.ARROW_LEFT)
    assert int(slider.get_attribute("aria-valuenow")) == newest - 1
    assert "A 100" in slider.get_attribute("aria-valuetext")
    assert all(" at " in each for each in captions(browser))
    slider.send_keys(Keys.HOME)
    assert int(slider.get_attribute("aria-valuenow")) == 0
    slider.send_keys(Keys.ESCAPE)
    assert not any(" at " in each for each in captions(browser))


def test_another_query_is_turned_to_with_enter_and_by_its_address(show, shown):
    shown.more = [known("other", STAR, batches(5))]
    browser = show()
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#queries a")) == 2)
    browser.find_elements(By.CSS_SELECTOR, "#queries a")[1].send_keys(Keys.ENTER)
    until(lambda: text(browser, "#name") == "other" and len(places(browser)) == 3 * 3 + 2 + 1)
    assert text(browser, "[aria-current] .name") == "other"
    browser.get("about:blank")
    browser.get(browser.web.url + "#run-of-other")
    until(lambda: text(browser, "#name") == "other")


def test_pause_holds_the_numbers(show, shown):
    browser = show()
    browser.find_element(By.ID, "pause").send_keys(Keys.SPACE)
    assert browser.find_element(By.ID, "pause").get_attribute("aria-pressed") == "true"
    before = None
    while before != shown.batches:
        before = shown.batches
        browser.execute_async_script("setTimeout(arguments[0], 1500)")
    held = places(browser)
    browser.find_element(By.ID, "pause").send_keys(Keys.SPACE)
    until(lambda: shown.batches > before)
    assert held.keys() == places(browser).keys()


@pytest.mark.long
def test_queries_come_and_fail_and_stay(show, shown):
    browser = show()
    shown.more = [known("latecomer", None, batches(3))]
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#queries a")) == 2)
    shown.more = [
        known("latecomer", None, batches(3), state="failed", error="error[WJ704]: no\nhelp: mend it")
    ]
    until(lambda: "failed" in text(browser, "#queries li:last-child"))
    browser.find_element(By.CSS_SELECTOR, "#queries li:last-child a").send_keys(Keys.ENTER)
    until(lambda: "WJ704" in text(browser, "#error"))
    assert browser.find_element(By.ID, "error").is_displayed()
    assert browser.find_element(By.ID, "state").text == "failed"
    assert not browser.find_element(By.ID, "plan").is_displayed()


def test_a_server_that_is_gone_is_told_and_the_last_numbers_stay(show):
    browser = show()
    assert not browser.find_element(By.ID, "gone").is_displayed()
    browser.web.close()
    until(lambda: browser.find_element(By.ID, "gone").is_displayed())
    assert "No answer since" in text(browser, "#gone")
    assert text(browser, "#name") == "pairs"
    assert "–" not in places(browser).values()


@pytest.mark.long
def test_without_the_token_the_page_is_refused(show):
    token = "y" * 20
    browser = show(token=token)
    assert browser.get_log("browser") == []
    browser.get(browser.web.url.partition("?")[0])
    assert "token" in browser.find_element(By.TAG_NAME, "body").text
    assert not browser.find_elements(By.ID, "query")


@pytest.mark.long
def test_hostile_names_do_not_run(show, shown):
    hostile = known(
        HOSTILE, STAR, [report(0, BEGAN, {HOSTILE: 5})], error=HOSTILE, state="failed", run="hostile"
    )
    shown.more = [hostile]
    browser = show("#hostile", ready=False)
    until(lambda: text(browser, "#name") == HOSTILE)
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "#pictures .plan"))
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 1
    assert [each for each in browser.get_log("browser") if "alert" in each["message"]] == []


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_it_is_readable_and_fits(show, shown, scheme, width):
    shown.more = [known("other", STAR, batches(5), state="failed", error="no")]
    browser = show(scheme=scheme, width=width)
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "#queries .failed"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    style = "const s = getComputedStyle(document.querySelector(arguments[0])); return s[arguments[1]]"
    back = color(browser.execute_script(style, "body", "backgroundColor"))[0]
    assert (luminance(back) < 0.2) == (scheme == "dark")
    for selector, property in (
        ("#name", "color"),
        ("#about", "color"),
        ("#queries .rate", "color"),
        ("#queries .failed", "color"),
        (".tile span", "color"),
        (".chart figcaption", "color"),
        (".series li", "color"),
        (".lines .tick", "fill"),
        ("#streams td", "color"),
        ("#compared tr.far td:last-child", "color"),
        ("#pictures .live", "color"),
    ):
        assert contrast(color(browser.execute_script(style, selector, property))[0], back) > 4.5, selector
    for number in range(3):
        stroke = color(browser.execute_script(style, f"[data-chart=rows] svg.lines .s{number}", "stroke"))[0]
        assert contrast(stroke, back) > 3, number


@pytest.mark.thorough
def test_with_reduced_motion_numbers_change_seldom(show, shown, monkeypatch):
    asked = []
    told = page_answers.detail
    monkeypatch.setattr(page_answers, "detail", lambda *each: asked.append(shown.batches) or told(*each))
    show(motion="reduce")
    until(lambda: shown.batches > 34)
    assert len(asked) <= (shown.batches - 20) / 3
    assert len(asked) > 1


def test_a_notebook_shows_it_in_a_frame(show, browser):
    browser = show()
    frame = browser.web._repr_html_()

    class Notebook(BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"<!DOCTYPE html><title>notebook</title>{frame}".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *values):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as notebook:
        threading.Thread(target=notebook.serve_forever, daemon=True).start()
        browser.get(f"http://localhost:{notebook.server_address[1]}/")
        browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
        until(lambda: text(browser, "#name") == "pairs")
        browser.switch_to.default_content()
        notebook.shutdown()
