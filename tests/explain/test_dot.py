"""DOT: valid by its grammar, with every stream, window and stage, whatever the names are."""

import re

import pytest

from tests.explain.drawn import (
    ALL,
    HOSTILE,
    chain,
    dot,
    hostile,
    named,
    native,
    one_sided,
    path,
    stages,
    static,
)
from wjoin.planner.explain.dot import quoted
from wjoin.planner.explain.markup import clean

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[{}\[\]=,]|[a-z_]+[a-z_0-9]*|\s+', re.DOTALL)
_NODE = re.compile(r"^\s*(\w+) \[", re.MULTILINE)
_EDGE = re.compile(r"^\s*(\w+) -> (\w+)(?: \[(.*)\])?$", re.MULTILINE)


def _texts(drawing: str) -> str:
    """Return the quoted strings of a drawing as they are shown."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', drawing)
    shown = [re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], each) for each in found]
    return "\n".join(shown).replace("&amp;", "&")


def _windows(drawing: str) -> list[str]:
    """Return the attributes of the edges of the window graphs."""
    return [attributes for source, _, attributes in _EDGE.findall(drawing) if source.startswith("w")]


@pytest.mark.parametrize("name", ALL)
def test_it_is_made_of_tokens_of_dot_and_its_brackets_match(name):
    drawing = dot(named(name))
    tokens = [each[0] for each in _TOKEN.finditer(drawing)]
    assert "".join(tokens) == drawing
    open_brackets = []
    for token in tokens:
        if token in ("{", "["):
            open_brackets.append(token)
        elif token in ("}", "]"):
            assert open_brackets.pop() == {"}": "{", "]": "["}[token]
    assert not open_brackets


@pytest.mark.parametrize("name", ALL)
def test_every_edge_joins_nodes_that_are_declared(name):
    drawing = dot(named(name))
    nodes = set(_NODE.findall(drawing))
    assert {end for edge in _EDGE.findall(drawing) for end in edge[:2]} <= nodes


@pytest.mark.parametrize("name", ALL)
def test_every_stream_and_every_window_of_each_alternative_is_there(name):
    document = named(name)
    drawing = dot(document)
    assert len(_windows(drawing)) == len(document["constraints"]["completed"])
    for each in document["streams"]:
        assert " ".join(clean(each["alias"]).split()) in _texts(drawing)


def test_given_windows_are_solid_derived_ones_dashed_tightened_ones_say_from_what():
    found = _windows(dot(chain(3)))
    assert [re.search(r'style="(\w+)"', each)[1] for each in found] == ["solid", "bold", "solid"]
    assert 'label="± 3 s\\ntightened from 3 d via A -> B -> C"' in found[1]
    found = _windows(dot(path()))
    assert [re.search(r'style="(\w+)"', each)[1] for each in found] == ["solid", "dashed", "solid"] * 2


def test_an_arrow_says_which_stream_is_later():
    drawing = dot(path())
    assert re.search(r'w1_0 -> w1_1 \[label="0 s … 5 s", .*dir="forward"', drawing)
    assert re.search(r'w2_1 -> w2_0 \[label="0 s … 5 s", .*dir="forward"', drawing)


def test_a_pair_without_a_bound_is_dotted_and_its_retention_endless():
    drawing = dot(one_sided())
    assert any('label="free' in each and 'style="dotted"' in each for each in _windows(drawing))
    assert "kept until A ends and C ends" in _texts(drawing)


def test_the_plan_has_stages_with_their_parts_keys_and_retention():
    document = stages()
    texts = _texts(dot(document))
    for part in ("bounds", "route", "kernel"):
        assert f"{part} {document['stages'][0][part]}" in texts
    assert "stage 2" in texts
    assert "A: key A.obj_id\nkept until the watermark of B passes ts + 5 s" in texts
    assert "A, B: key B.frame" in texts
    assert "check A.speed + B.speed > C.speed" in texts


def test_spark_joins_static_relations_after_the_stages():
    drawing = dot(static())
    assert re.search(r"p_2 -> spark$", drawing, re.MULTILINE)
    assert re.search(r"s_0 -> spark$", drawing, re.MULTILINE)


def test_a_native_plan_shows_no_parts_of_ours():
    texts = _texts(dot(native()))
    assert "Spark's own two-way joins" in texts
    assert "kernel" not in texts
    assert "kept until" not in texts


def test_a_hostile_name_stays_a_text():
    assert " ".join(clean(HOSTILE).split()) in _texts(dot(hostile()))
    assert quoted('a"b\\') == '"a\\"b\\\\"'
    assert quoted("&lt;\n") == '"&amp;lt;\\n"'
