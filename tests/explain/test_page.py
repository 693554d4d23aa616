"""The page without a browser: well-formed, complete, and proof against hostile texts."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from tests.explain.drawn import (
    ALL,
    SLOW,
    alternatives,
    at_once,
    chain,
    copies,
    drawn,
    fragment,
    hops,
    hostile,
    integral,
    long_names,
    named,
    native,
    one_sided,
    page,
    path,
    read,
    slices,
    stages,
    static,
)
from tests.tiers import tiers
from wjoin.planner.explain.markup import clean, escape, fitted, tag, text_width
from wjoin.planner.explain.page_chart import CUT
from wjoin.planner.explain.page_style import ROOT, STYLE
from wjoin.planner.explain.phrases import BoundOrigin
from wjoin.planner.explain.text import explain_text

_SVG = "{http://www.w3.org/2000/svg}"


def _tree(*documents):
    return ElementTree.fromstring(fragment(documents))


def _of_class(tree, name):
    return [each for each in tree.iter() if name in (each.get("class") or "").split()]


def _text(element):
    return "".join(element.itertext())


@pytest.mark.parametrize("name", tiers(ALL, long=SLOW))
def test_page_and_fragment_are_well_formed(name):
    text = page([named(name)], name)
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert _tree(named(name)).get("class") == ROOT
    assert named(name) == json.loads(json.dumps(named(name)))


@pytest.mark.parametrize("name", tiers(ALL, long=SLOW))
def test_nothing_comes_from_elsewhere_and_nothing_runs(name):
    tree = ElementTree.fromstring(page([named(name)], name).removeprefix("<!DOCTYPE html>\n"))
    assert not {"script", "link", "img", "iframe", "object"} & {
        each.tag.split("}")[-1] for each in tree.iter()
    }
    attributes = {name for each in tree.iter() for name in each.attrib}
    assert not {"src", "href", "id"} & attributes
    assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in STYLE
    assert "@import" not in STYLE


@pytest.mark.parametrize("name", tiers(ALL, long=SLOW))
def test_every_stream_window_and_candidate_is_drawn(name):
    document = named(name)
    tree = _tree(document)
    branches = alternatives(document)
    assert len(_of_class(tree, "windows")) == len(branches)
    streams = [clean(each["alias"]) for each in document["streams"]] * len(branches)
    assert [each.get("data-stream") for each in _of_class(tree, "node")] == streams
    edges = [each for each in _of_class(tree, "edge") if each.get("data-edge")]
    assert len(edges) == len(document["constraints"]["completed"])
    bars = _of_class(tree, "candidate")
    others = _of_class(tree, "unranked")
    drawn_plans = [each.get("data-plan") for each in (*bars, *others)]
    assert drawn_plans == [each["plan"] for each in document["candidates"]]
    assert [each["ranked"] for each in document["candidates"]] == [True] * len(bars) + [False] * len(others)
    assert len(_of_class(tree, "box")) >= len(document["streams"]) + len(document["stages"]) + 1


@pytest.mark.parametrize("name", tiers(sorted(set(ALL) - {"twelve streams"}), long=SLOW))
def test_labels_say_the_interval_and_what_was_tightened(name):
    labels = _of_class(_tree(named(name)), "label")
    shown = sorted(tuple(each.text for each in label.iter(f"{_SVG}text")) for label in labels)
    links = [link for branch in alternatives(named(name)) for link in branch]
    assert shown == sorted((link.was, link.interval) if link.was else (link.interval,) for link in links)


def test_of_many_streams_only_the_windows_that_were_written_have_labels():
    labels = _of_class(_tree(named("twelve streams")), "label")
    assert len(labels) == 12
    assert not [each for each in labels if "derived" in each.get("class")]


def test_kinds_of_windows_have_lines_of_their_own():
    links = {(link.first, link.second): link for link in alternatives(chain(3))[0]}
    assert links["A", "B"].kind is BoundOrigin.GIVEN
    assert links["A", "C"].kind is BoundOrigin.TIGHTENED
    assert (links["A", "C"].was, links["A", "C"].interval) == ("± 3 d", "± 3 s")
    tree = _tree(chain(3))
    assert len([each for each in _of_class(tree, "tightened") if each.get("data-edge")]) == 1
    assert "given in the statement" in _text(_of_class(tree, "legend")[0])
    assert "derived" not in _text(_of_class(tree, "legend")[0])


def test_windows_are_turned_to_read_forward():
    first, second = alternatives(path())
    assert [(link.first, link.second, link.interval) for link in first] == [
        ("A", "B", "0 s … 5 s"),
        ("A", "C", "0 s … 13 s"),
        ("B", "C", "0 s … 8 s"),
    ]
    assert [(link.first, link.second, link.interval) for link in second] == [
        ("B", "A", "0 s … 5 s"),
        ("C", "A", "0 s … 13 s"),
        ("C", "B", "0 s … 8 s"),
    ]
    assert second[0].sentence == "B − A: −5 s … 0 s"


def test_a_window_that_is_partly_given_and_one_that_is_open():
    document = drawn(
        "SELECT A.frame FROM camera1 A, camera2 B, camera3 C "
        "WINDOW A = 10 s AND WINDOW (A, B) = 2 s AND DWINDOW (B, C) = 9 s"
    )
    links = {frozenset((link.first, link.second)): link for link in alternatives(document)[0]}
    assert links[frozenset("AC")].kind is BoundOrigin.PARTLY
    assert links[frozenset("AC")].interval == "−2 s … 10 s"
    free = [link for link in alternatives(one_sided())[0] if link.kind is BoundOrigin.FREE]
    assert [link.interval for link in free] == ["free"]


def test_bars_are_linear_cut_and_only_the_first_is_marked():
    document = path()
    tree = _tree(document)
    first, *others = _of_class(tree, "candidate")
    assert first.get("class") == "candidate chosen"
    assert all(other.get("class") == "candidate" for other in others)
    lengths = [sum(float(bar.get("width")) for bar in _of_class(each, "term")) for each in (first, *others)]
    ranked = [each for each in document["candidates"] if each["ranked"]]
    shared = sum(document["shared"].values())
    assert shared > 0
    costs = [each["cost"] - shared for each in ranked]
    end = min(max(CUT * costs[0], ranked[0]["cost"]), max(costs) * 1.02)
    for length, cost, drawn_bar in zip(lengths, costs, (first, *others), strict=True):
        assert length == pytest.approx(328 * min(cost, end) / end, abs=0.6)
        assert bool(_of_class(drawn_bar, "break")) == (cost > end)
    for drawn_bar, candidate in zip(others, ranked[1:], strict=True):
        assert candidate["lost"] in _text(_of_class(drawn_bar, "reason")[0])


def test_every_term_is_in_every_bar_and_in_the_legend():
    document = stages()
    tree = _tree(document)
    ranked = [each for each in document["candidates"] if each["ranked"]]
    for bar, candidate in zip(_of_class(tree, "candidate"), ranked, strict=True):
        assert {each.get("data-term") for each in _of_class(bar, "term")} == set(candidate["terms"])
    legend = _text(_of_class(tree, "legend")[1])
    assert all(name in legend for name in document["chosen"]["terms"])


def test_costs_of_nothing_are_drawn():
    document = chain(2)
    for each in (document["chosen"], *document["candidates"]):
        each["terms"], each["cost"] = dict.fromkeys(each["terms"], 0.0), 0.0
    document["shared"] = {}
    ranked = [each for each in document["candidates"] if each["ranked"]]
    assert len(_of_class(_tree(document), "candidate")) == len(ranked)


def test_what_all_plans_pay_alike_is_told_and_not_drawn():
    document = path()
    notes = " ".join(_text(each) for each in _of_class(_tree(document), "note"))
    assert "The bars leave out what every plan costs; every plan costs at least" in notes
    assert "reading rows 6" in notes
    native_plan = next(each for each in document["candidates"] if not each["ranked"])
    assert "Spark's own two-way joins (native): " in notes
    assert native_plan["lost"] in notes


def test_no_number_is_a_power_of_ten():
    document = drawn("SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 30 DAYS")
    assert document["chosen"]["results"] > 1e16
    text = _text(_tree(document))
    assert "more than 1,000 billion" in text
    assert not re.search(r"\de[+-]\d|× 10", text)


def test_the_plan_says_parts_keys_retention_and_what_comes_after():
    document = stages()
    text = " ".join(_text(each) for each in _of_class(_tree(document), "box"))
    for part in ("bounds", "route", "kernel"):
        assert f"{part} {document['stages'][0][part]}" in text
    assert "A: key A.obj_id" in text
    assert "A, B: key B.frame" in text
    assert "its rows are kept until at the latest the watermark of C passes A.ts + 5 s" in text.replace(
        "\u00a0", " "
    )
    assert "check A.speed + B.speed >" in text
    assert "V: static, no state" in " ".join(_text(each) for each in _of_class(_tree(static()), "box"))


def test_a_native_plan_shows_no_parts_of_ours():
    text = " ".join(_text(each) for each in _of_class(_tree(native()), "box"))
    assert "Spark's own two-way joins" in text
    assert "kernel" not in text
    assert "kept" not in text


def test_slices_are_drawn_with_the_workers_that_keep_and_meet_a_row():
    document = slices()
    first, second = _of_class(_tree(document), "slices")
    assert [_text(each)[-1] for each in _of_class(first, "slice")] == list("12341234")
    assert len(_of_class(first, "own")) == 1
    # Two inputs, each of whose rows one worker keeps and the three others meet.
    assert (len(_of_class(first, "keeps")), len(_of_class(first, "meets"))) == (2, 6)
    assert "a row of A B" in _text(second)
    words = " ".join(_text(each) for each in _of_class(_tree(document), "legend"))
    assert "near the end of slice 2" in words
    assert "a worker meets it" in words
    assert "a copy" not in words


def test_copies_are_drawn_and_no_slices_where_there_is_one_worker():
    (drawing,) = _of_class(_tree(copies()), "slices")
    assert [len(_of_class(drawing, each)) for each in ("keeps", "copies", "meets")] == [3, 2, 0]
    assert _of_class(_tree(stages()), "slices") == []


def test_rows_that_are_never_dropped_are_a_warning():
    warnings = [_text(each) for each in _of_class(_tree(one_sided()), "warning")]
    assert "The rows of B are kept forever: no window limits how far A and C can be after B." in warnings
    assert any(each.startswith("A stage has no key, so one worker compares every pair") for each in warnings)


def test_every_statistic_has_its_source():
    document = chain(3)
    document["statistics"][0]["rate"] = {"value": 12.5, "source": "analyzed"}
    tree = _tree(document)
    table = next(each for each in tree.iter("table") if each.find("thead") is not None)
    facts = _of_class(table, "fact")
    assert _text(facts[0]) == "12.5analyzed"
    assert all(len(_of_class(each, "source")) == 1 for each in facts)
    assert "17 of these 18 numbers are defaults" in _text(tree)


def test_whole_number_time_has_no_seconds():
    text = _text(_tree(integral()))
    assert "2 … 5" in text
    assert "per unit of event time" in text


def test_several_joins_are_numbered():
    tree = _tree(chain(2), path())
    assert [_text(each) for each in tree.iter("h2")] == ["Window join 1 of 2", "Window join 2 of 2"]


def test_rules_stay_inside_their_class():
    rules = re.sub(r"\s+", " ", STYLE.replace("@media (prefers-color-scheme: dark) {", ""))
    for selectors in re.findall(r"([^{}]+)\{", rules):
        assert all(each.strip().startswith(f".{ROOT}") for each in selectors.split(","))


class _Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = set()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)


def test_hostile_texts_are_shown_not_obeyed():
    text = page([hostile()], "</title><script>alert(1)</script>")
    parser = _Elements()
    parser.feed(text)
    assert "script" not in parser.names
    assert "<script" not in text
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in text
    assert not re.search("[\x00-\x08\x1b\u202e]", text)


def test_markup_escapes_text_and_attributes():
    assert tag("b", "<", title='"') == '<b title="&quot;">&lt;</b>'
    assert escape(escape("&")) == "&amp;"
    assert clean("a\x00b\ud800") == "a\ufffdb\ufffd"


def test_texts_are_fitted():
    assert text_width(fitted("word " * 50, 12, 100), 12) <= 100


def test_long_names_that_end_differently_are_told_apart():
    tree = _tree(long_names())
    nodes = [
        next(text for text in each.iter() if text.tag.endswith("text")) for each in _of_class(tree, "node")
    ]
    boxes = [_of_class(each, "name")[0] for each in _of_class(tree, "box")]
    for first in (nodes, boxes):
        assert len(first) >= 3 and len({_text(each) for each in first}) == len(first)
    assert fitted("a" * 30 + "b" * 30, 12, 100, middle=True).strip("ab") == "…"
    assert text_width(fitted("a" * 30 + "b" * 30, 12, 100, middle=True), 12) <= 100


@pytest.mark.long
def test_hops_say_what_they_keep_and_what_goes_on():
    document = hops()
    tree = _tree(document)
    boxes = [_text(each) for each in _of_class(tree, "box") if _text(each).startswith("Hop ")]
    assert sorted({each[:5] for each in boxes}) == ["Hop 1", "Hop 2", "Hop 3"]
    assert len(boxes) == 3, "each is drawn once, whatever comes out of it"
    second = " ".join(next(each for each in boxes if each.startswith("Hop 2")).split())
    assert "B: stored for new D (a copy of hop 1)" in second
    assert "partial results A, B of new A probe C" in second
    assert "D: forwarded" in second
    last = " ".join(next(each for each in boxes if each.startswith("Hop 3")).split())
    assert "partial results A, B, C of new A probe D" in last
    told = explain_text(read(document))
    assert "2: hop 2 without a key" in told
    # Those of new B and of new C lie alike.
    assert told.count("\n     B C: each row probes the workers in reach") == 1


def test_what_meets_at_once_is_put_together_by_its_rows():
    document = at_once()
    told = explain_text(read(document))
    assert "1: hop 1 without a key" in told
    assert "A: new rows probe B and, separately, C, stored for new B and C" in told
    assert "2: combines the partial results of one row\n" in told
    assert "partial results A, B of new A join those of the same row with C" in told
    text = " ".join(_text(_tree(document)).split())
    assert "Combines the partial results of one row" in text
