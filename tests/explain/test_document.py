"""The document: one for all renderers, whole in JSON, and with the keys that programs know."""

import ast
import json

import pytest

from tests.explain.drawn import ALL, SLOW, named, path, read, static
from tests.packages import ROOT
from tests.tiers import tiers
from wjoin.grammar.plain import plain

FOLDER = ROOT / "planner" / "explain"
BELOW = (
    "wjoin.grammar.plurals",
    "wjoin.planner.explain",
    "wjoin.planner.figures",
    "wjoin.planner.windows.lengths",
)
"""What the renderers may import of ours: each other, the document, and words for numbers."""

READERS = ("describe", "kept_state", "overload_description", "plan_words", "stage_description", "visit_notes")
"""The modules that read the plan."""

KEYS = {
    "": "format time streams constraints equality_classes residual statistics chosen candidates shared "
    "unknown assumptions stages match_delay",
    "streams": "alias relation event_time delay streaming columns filters",
    "constraints": "given completed contradictory_alternatives",
    "constraints.given": "from to lo hi alternative",
    "constraints.completed": "from to lo hi alternative origin",
    "equality_classes": "type parts",
    "statistics": "alias rate width disorder selectivity keys",
    "statistics.rate": "value source",
    "statistics.keys": "expressions distinct heaviest",
    "candidates": "plan words ranked method bounds route kernel passes order cost terms "
    "comparisons results shuffled_bytes state_rows state_bytes lost",
    "stages": "inputs bounds route kernel order bands",
    "stages.inputs": "members stage key kept_for",
}
"""Keys of format 2; others may be added."""


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_only_those_that_describe_read_the_plan():
    readers = tuple(f"wjoin.planner.explain.{name}." for name in READERS)
    renderers = [each for each in FOLDER.glob("*.py") if each.stem not in READERS]
    wrong = [
        f"{each.name} imports {name}"
        for each in renderers
        for name in _imports(each)
        if name.split(".")[0] == "wjoin" and (not name.startswith(BELOW) or name.startswith(readers))
    ]
    assert len(renderers) > 5
    assert wrong == []
    assert "wjoin.planner.planning.PlannedSelect" in _imports(FOLDER / "describe.py")


@pytest.mark.parametrize("name", tiers(ALL, long=SLOW))
def test_json_holds_all_that_is_drawn(name):
    document = read(json.loads(json.dumps(named(name))))
    assert plain(document) == named(name)
    assert document.chosen == document.candidates[0]


def test_the_keys_that_programs_know_stay():
    for place, keys in KEYS.items():
        found = named("stages")
        for step in place.split(".") if place else ():
            found = found[step]
            found = found[0] if isinstance(found, list) else found
        assert [each for each in found if each in keys.split()] == keys.split()
    assert named("stages")["format"] == 2


def test_a_hull_and_passes_are_there_where_alternatives_are():
    hull = path()["constraints"]["hull"]
    assert hull[0] == {"from": "A", "to": "B", "lo": -5_000_000, "hi": 5_000_000, "alternative": 0}
    assert path()["stages"][0]["parts"][-1]["name"] == "passes"
    assert static()["constraints"]["hull"] == []
    assert "passes" not in [each["name"] for each in static()["stages"][0]["parts"]]
    assert [each["alias"] for each in static()["lookups"]] == ["V"]
