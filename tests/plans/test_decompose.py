"""Every decomposition is legal and enforces every equality, whatever the classes."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from wjoin.grammar.spans import Span
from wjoin.planner.conditions.conjuncts import Equality, Side
from wjoin.planner.shape.decompose import Decomposition, decompose, in_pairs
from wjoin.planner.shape.join_keys import EqualityClass, KeyPart, TypedEquality, equality_classes

NOWHERE = Span(0, 0)


def side(stream: int, expression: str) -> Side:
    text = f"S{stream}.{expression}"
    return Side(stream, text, text.lower(), None, (), NOWHERE)


@st.composite
def equalities(draw: st.DrawFn) -> tuple[int, list[TypedEquality]]:
    size = draw(st.integers(2, 5))
    found = []
    for _ in range(draw(st.integers(0, 8))):
        left, right = draw(st.permutations(range(size)))[:2]
        columns = draw(st.tuples(*[st.sampled_from("xyz")] * 2))
        kind = draw(st.sampled_from(["bigint", "int", "string", "array<int>"]))
        equality = Equality(side(left, columns[0]), side(right, columns[1]), NOWHERE)
        found.append(TypedEquality(equality, (kind, kind), kind))
    return size, found


def check_legal(size: int, classes: tuple[EqualityClass, ...], made: Decomposition) -> None:
    available = {(stream,): None for stream in range(size)}
    for number, stage in enumerate(made.stages):
        owners = []
        for each in stage.inputs:
            assert available.pop(each.members) == each.stage, "an input that is not there"
            assert {part.stream for part in each.key} <= set(each.members)
            assert len({part.stream for part in each.key}) <= 1, "a key of several streams"
            assert [part.type for part in each.key] == [classes[n].type for n in stage.classes]
            owners.append(tuple(part.side.identity for part in each.key))
        assert all(bool(owner) == bool(stage.classes) for owner in owners)
        available[tuple(sorted(stage.members))] = number
    # StageEdge lists members sorted, so the last stage is the one left.
    assert [tuple(range(size))] == list(available)


def enforced(made: Decomposition) -> set[frozenset[tuple[str, str]]]:
    """Return the groups of expressions that keys and checks make equal, by union."""
    pairs = [tuple((part.side.identity, part.type) for part in pair) for pair in made.equalities]
    for stage in made.stages:
        for number in range(len(stage.classes)):
            keys = [(each.key[number].side.identity, each.key[number].type) for each in stage.inputs]
            pairs += list(combinations(keys, 2))
    groups: list[set[tuple[str, str]]] = []
    for pair in pairs:
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched] + [set(pair).union(*touched)]
    return {frozenset(group) for group in groups}


@given(equalities())
def test_stages_are_legal_and_enforce_every_class(drawn: tuple[int, list[TypedEquality]]) -> None:
    size, found = drawn
    classes, _ = equality_classes(found)
    made = decompose(size, classes)
    check_legal(size, classes, made)
    wanted = {frozenset((part.side.identity, part.type) for part in each.parts) for each in classes}
    assert enforced(made) == wanted


@given(equalities())
def test_joins_of_two_are_legal_and_as_many_as_there_are_inputs(
    drawn: tuple[int, list[TypedEquality]],
) -> None:
    size, found = drawn
    classes, _ = equality_classes(found)
    made = decompose(size, classes)
    keyless = [stage for stage in made.stages if not stage.classes]
    count = len(keyless[0].inputs) if keyless else 0
    pairs = in_pairs(made)
    for each in pairs:
        check_legal(size, classes, each)
        assert each.equalities == made.equalities
        assert each.stages[: len(made.stages) - 1] == made.stages[:-1]
        split = [stage for stage in each.stages if not stage.classes]
        assert [len(stage.inputs) for stage in split] == [2] * max(0, count - 1)
    assert len(set(pairs)) == len(pairs) == {3: 3, 4: 6}.get(count, 1)


def sequences(size: int, *links: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """Return the members of the stages of each chain of joins of two, without a key."""
    return [[stage.members for stage in each.stages] for each in in_pairs(decompose(size, []), links)]


def test_joins_of_two_follow_the_conditions() -> None:
    assert sequences(3, (0, 2), (1, 2)) == [[(0, 2), (0, 2, 1)], [(1, 2), (1, 2, 0)], [(0, 1), (0, 1, 2)]]
    first, *_, last = sequences(5, (1, 3), (3, 4), (0, 2), (2, 4))
    assert [stage[-1] for stage in first] == [2, 4, 3, 1]
    assert last == [(0, 1), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)]


def test_a_condition_on_three_streams_links_the_last_of_them() -> None:
    first = sequences(5, (0, 1, 4))[0]
    assert [stage[-1] for stage in first] == [1, 4, 2, 3]


@given(equalities())
def test_classes_and_filters_keep_every_equality(drawn: tuple[int, list[TypedEquality]]) -> None:
    _, found = drawn
    classes, filters = equality_classes(found)
    streams = [tuple(part.stream for part in each.parts) for each in classes]
    assert all(each == tuple(sorted(set(each))) and len(each) > 1 for each in streams)
    kept = {text for each in classes for part in each.parts for text in (part.side.text,)}
    extra = " ".join(each.text for each in filters)
    for each in found:
        for part in (each.equality.left, each.equality.right):
            assert part.text in kept or part.text in extra


def part(stream: int, expression: str, kind: str = "bigint") -> KeyPart:
    return KeyPart(side(stream, expression), kind, kind)


def test_a_star_is_one_stage() -> None:
    made = decompose(4, (EqualityClass("bigint", tuple(part(stream, "x") for stream in range(4))),))
    assert len(made.stages) == 1 and not made.equalities


def test_a_key_that_cannot_be_compared_here_is_checked_later() -> None:
    parts = tuple(part(stream, "x", "array<int>") for stream in range(3))
    made = decompose(3, (EqualityClass("array<int>", parts),))
    assert [(first.stream, second.stream) for first, second in made.equalities] == [(0, 1), (0, 2)]
