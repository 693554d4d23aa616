"""The page in a real browser: Debian's chromium without a screen. Without one these tests fail."""

from itertools import combinations

import pytest
from selenium.webdriver.common.by import By

from tests.browser import chromium, color, contrast, emulate, luminance
from tests.explain.drawn import ALL, chain, fragment, hostile, named, page, path
from tests.tiers import tiers

# Every test loads a page or two; the browser starts once.
pytestmark = [pytest.mark.thorough, pytest.mark.slow]

SOME = ["three streams", "alternatives", "hops"]
"""Documents that make long draws; make thorough draws all."""

BOXES = """
return [...document.querySelectorAll(arguments[0])].map(each => {
  const box = each.getBoundingClientRect();
  return {left: box.left, right: box.right, top: box.top, bottom: box.bottom,
          name: each.textContent.trim()};
});
"""
STYLE_OF = """
const style = getComputedStyle(document.querySelector(arguments[0]));
return [style.color, style.fill, style.backgroundColor];
"""
COLORS = {
    "text": ".wjoin-plan .lead",
    "note": ".wjoin-plan .note",
    "warning": ".wjoin-plan .warning",
    "cell": ".wjoin-plan td",
    "source": ".wjoin-plan .box.source",
    "kept": ".wjoin-plan .box .kept",
    "reason": ".wjoin-plan .candidate:not(.chosen) .reason",
}
FILLS = {
    "label": ".wjoin-plan .label.given text",
    "tightened": ".wjoin-plan .label.tightened .interval",
    "node": ".wjoin-plan .node text",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = chromium(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, tmp_path):
    """Return a function that loads the page of some documents and checks that nothing went wrong."""

    def load(*documents, scheme="light", text=None):
        emulate(browser, color_scheme=scheme)
        place = tmp_path / "page.html"
        place.write_text(page(documents, "The plan") if text is None else text, encoding="utf-8")
        browser.get(place.as_uri())
        assert browser.get_log("browser") == []
        return browser

    return load


@pytest.fixture
def narrow(browser):
    """Return a function that makes the screen so many pixels wide, until the test has ended."""

    def resize(width):
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    yield resize
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _touch(first, second):
    across = first["left"] < second["right"] and second["left"] < first["right"]
    return across and first["top"] < second["bottom"] and second["top"] < first["bottom"]


@pytest.mark.parametrize("name", tiers(ALL, long=SOME))
def test_pictures_have_a_size_and_hold_their_texts(show, name):
    browser = show(named(name))
    for each in browser.execute_script(BOXES, "svg.picture"):
        assert each["right"] - each["left"] > 5
        assert each["bottom"] - each["top"] > 5
    script = """
    return [...document.querySelectorAll('.wjoin-plan :is(.node, .label)')].map(each => {
      const frame = each.querySelector('rect').getBoundingClientRect();
      return [...each.querySelectorAll('text')].map(text => {
        const box = text.getBoundingClientRect();
        return [text.textContent, box.left - frame.left, frame.right - box.right,
                box.top - frame.top, frame.bottom - box.bottom];
      });
    }).flat();
    """
    outside = [each for each in browser.execute_script(script) if min(each[1:]) < -1]
    assert not outside
    script = """
    return [...document.querySelectorAll('.wjoin-plan .box')]
      .filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent);
    """
    assert not browser.execute_script(script)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("streams", tiers([2, 3, 5, 8], long=[5]))
def test_labels_of_windows_do_not_overlap(show, streams, wide):
    browser = show(chain(streams, wide=wide))
    labels = browser.execute_script(BOXES, ".wjoin-plan .windows .label")
    assert len(labels) == streams * (streams - 1) // 2
    taken = labels + browser.execute_script(BOXES, ".wjoin-plan .windows .node")
    assert not [(a["name"], b["name"]) for a, b in combinations(taken, 2) if _touch(a, b)]


@pytest.mark.long
def test_alternatives_stand_side_by_side(show):
    browser = show(path())
    first, second = browser.find_elements(By.CSS_SELECTOR, ".wjoin-plan .windows")
    assert first.rect["x"] + first.rect["width"] < second.rect["x"]
    assert first.rect["y"] == second.rect["y"]


@pytest.mark.parametrize("name", tiers(ALL, long=SOME))
def test_boxes_of_the_plan_do_not_overlap(show, name):
    boxes = show(named(name)).execute_script(BOXES, ".wjoin-plan .plan .box")
    assert not [(a["name"], b["name"]) for a, b in combinations(boxes, 2) if _touch(a, b)]


@pytest.mark.long
def test_the_chosen_bar_is_the_marked_one(show):
    document = path()
    browser = show(document)
    chosen = browser.find_elements(By.CSS_SELECTOR, ".wjoin-plan .candidate.chosen")
    assert [each.get_attribute("data-plan") for each in chosen] == [document["chosen"]["plan"]]
    mark = browser.execute_script(BOXES, ".wjoin-plan .candidate.chosen")
    names = browser.execute_script(BOXES, ".wjoin-plan .candidate .name")
    assert [each["name"] for each in names if _touch(each, mark[0])] == [f"✓ {document['chosen']['words']}"]
    (line,) = browser.execute_script(BOXES, ".wjoin-plan .candidate.chosen .chosen-cost")
    ends = [each["right"] for each in browser.execute_script(BOXES, ".wjoin-plan .candidate.chosen .term")]
    assert max(ends) == pytest.approx(line["left"], abs=1.5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["alternatives", "long names"])
def test_names_numbers_and_reasons_of_bars_do_not_overlap(show, name):
    document = named(name)
    browser = show(document)
    browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    rows = browser.find_elements(By.CSS_SELECTOR, ".wjoin-plan .candidate")
    assert len(rows) == len([each for each in document["candidates"] if each["ranked"]])
    parts = "'.name, .bar, .cost, .reason'"
    script = (
        f"return [...arguments[0].querySelectorAll({parts})].map(e => e.getBoundingClientRect().toJSON())"
    )
    for row in rows:
        for first, second in combinations(browser.execute_script(script, row), 2):
            assert not _touch(first, second)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_texts_are_readable_in_light_and_dark(show, scheme):
    document = chain(3)
    document["constraints"]["contradictory_alternatives"] = 1
    browser = show(document, scheme=scheme)
    back, _ = color(browser.execute_script(STYLE_OF, ".wjoin-plan")[2])
    assert (luminance(back) < 0.2) == (scheme == "dark")
    body, _ = color(browser.execute_script(STYLE_OF, "body")[2])
    assert body == back
    for place, names in enumerate((COLORS, FILLS)):
        for name, selector in names.items():
            style = browser.execute_script(STYLE_OF, selector)
            own, opaque = color(style[2])
            assert contrast(color(style[place])[0], own if opaque else back) > 4.5, name
    panel, _ = color(browser.execute_script(STYLE_OF, ".wjoin-plan .box.source")[2])
    assert contrast(color(browser.execute_script(STYLE_OF, ".wjoin-plan .box .kept")[0])[0], panel) > 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.long
def test_a_fragment_leaves_the_page_around_it_alone(show, scheme):
    mine = "<p class='lead' style='width: 300px'>mine</p>"
    around = f"<!DOCTYPE html><html><head><meta charset='utf-8'></head><body>{mine}"
    plain = show(scheme=scheme, text=f"{around}</body></html>")
    style = """
    const style = getComputedStyle(document.querySelector('p'));
    return [...style].map(name => [name, style.getPropertyValue(name)]);
    """
    before = plain.execute_script(style)
    assert ["display", "block"] in before
    twice = fragment([chain(2)]) * 2
    assert show(scheme=scheme, text=f"{around}{twice}</body></html>").execute_script(style) == before


@pytest.mark.long
def test_a_narrow_cell_scrolls_inside_and_not_the_notebook(show, browser):
    cell = f"<!DOCTYPE html><meta charset='utf-8'><div style='width: 640px'>{fragment([chain(8)])}</div>"
    show(text=cell)
    inside = browser.execute_script(
        "return document.querySelector('.wjoin-plan').getBoundingClientRect().right"
    )
    assert inside <= 660
    script = "const root = document.querySelector('.wjoin-plan'); return root.scrollWidth - root.clientWidth"
    assert browser.execute_script(script) <= 0


@pytest.mark.parametrize("name", tiers(ALL, long=SOME))
@pytest.mark.parametrize("width", [500, 1200])
def test_on_a_narrow_screen_the_page_is_as_wide_as_the_screen(show, narrow, name, width):
    narrow(width)
    browser = show(named(name))
    script = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert browser.execute_script(script) <= 0
    # Of each candidate bar and cost are seen without scrolling, on the wider one the reason as well.
    seen = ".cost" if width == 500 else ":is(.cost, .reason)"
    for each in browser.execute_script(BOXES, f".wjoin-plan :not(details) > .costs .candidate {seen}"):
        assert each["right"] < width - 24


@pytest.mark.long
def test_hostile_texts_do_not_run(show):
    browser = show(hostile())
    assert not browser.find_elements(By.TAG_NAME, "script")
    names = [each.get_attribute("data-stream") for each in browser.find_elements(By.CSS_SELECTOR, ".node")]
    assert names[0].startswith('<script>alert("x")</script>')
