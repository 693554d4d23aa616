"""What a checkpoint belongs to: the meaning of a statement, however it is written."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.plans.catalogue import PREDICATES, FakeTypes, first_block, relation
from wjoin.executor.state.identity import STATE_FORMAT, Whole, checked, fingerprint, identity, refuse_other
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.plain import typed
from wjoin.grammar.statement_kinds import Query
from wjoin.planner.bind.written import Written
from wjoin.planner.catalog import Relation
from wjoin.planner.choose.layouts import FREE, Layout, of_checkpoint
from wjoin.planner.planning import PlannedSelect, apply_edits, plan_select, statement_meaning
from wjoin.planner.request import Request
from wjoin.udfs.built_in import known_predicates

ENTRIES = relation("person int;door int;code string;tags array<string>;level decimal(10,2);at timestamp")
RELATIONS = {
    "badge": ENTRIES,
    "visits": relation("person int;door int;code string;entered timestamp"),
    "taps": ENTRIES,
}

Change = Callable[[Relation], Relation]


def planned(
    sql: str,
    body: Mapping[str, object] | None = None,
    layouts: tuple[Layout, ...] = (),
    change: Change = lambda each: each,
    parameters: Mapping[str, object] | None = None,
) -> tuple[list[PlannedSelect], dict[str, object]]:
    """Plan all joins of a statement, on a checkpoint of the identity ``body``; return its own identity."""
    text, joins, relations = sql, list[PlannedSelect](), []
    while isinstance(statement := parse_script(text)[0], Query):
        block = first_block(text)
        items = [change(RELATIONS[item.parts[-1].name] if item.parts else ENTRIES) for item in block.items]
        rule = FREE
        if body is not None:
            written = typed(Written, body["written"][len(joins)])  # type: ignore[index]  # JSON
            rule = of_checkpoint(layouts[len(joins)], written=written)
            items = [written.relation(*each) for each in enumerate(items)]
        asked = Request(
            text,
            block,
            items,
            FakeTypes(tuple(items)),
            f"__wjoin_input_{len(joins)}",
            parameters or {},
            layouts=rule,
            predicates={**known_predicates(), **PREDICATES},
        )
        each = plan_select(asked)
        joins.append(each)
        relations.append([item.relation.of(text) for item in block.items])
        text = apply_edits(text, each.edits)
    del statement
    meaning = statement_meaning(text, joins, relations)
    whole = Whole(meaning, tuple(each.written for each in joins))
    return joins, identity([each.physical for each in joins], 4, whole)


def goes_on(first: str, second: str, change: Change = lambda each: each) -> None:
    """Go on with another spelling: the state lies where it lay, under the same names."""
    before, kept = planned(first)
    after, own = planned(second, kept, tuple(each.layout for each in before), change)
    refuse_other(checked(kept), own)
    for was, now, join in zip(before, after, kept["joins"], strict=True):
        assert now.layout == was.layout
        known = [fingerprint(now.physical, stage) for stage in now.physical.stages]
        assert known == [stage["plan"] for stage in join["stages"]]
        pairs = zip(was.physical.stages, now.physical.stages, strict=True)
        for one, other in pairs:
            assert (one.inputs, one.bands) == (other.inputs, other.bands), (
                "columns and bands have their numbers"
            )


BASE = """
SELECT A.person, B.door AS entered_by, A.tags FROM badge A, visits B WINDOW (A, B) = 20 SECONDS
WHERE A.person = B.person AND A.door < B.door AND A.code <> 'x' AND lower(A.code) = lower(concat('b', B.door))
  AND A.at > TIMESTAMP '2020-01-01 00:00:00' AND A.door + B.door < 100
"""
SAME = {
    "case of words": BASE.replace("SELECT", "select").replace("WHERE", "where").replace("AND", "and"),
    "blanks": " ".join(BASE.split()).replace(" < ", "<").replace(" = ", "  =\n "),
    "comments": BASE.replace("WHERE", "-- which\nWHERE /* all */"),
    "case of names": BASE.replace("A.door", "a.DOOR").replace("lower(", "LOWER("),
    "backticks": BASE.replace("A.door", "`A`.`door`"),
    "an interval": BASE.replace("20 SECONDS", "INTERVAL '20' SECOND"),
    "another unit": BASE.replace("20 SECONDS", "20000 ms"),
    "other terms": BASE.replace("= 20 SECONDS", "BETWEEN -20 SECONDS AND INTERVAL 20 SECONDS"),
    "equality turned round": BASE.replace("A.person = B.person", "B.person = A.person"),
    "equality of expressions turned round": BASE.replace(
        "lower(A.code) = lower(concat('b', B.door))", "LOWER(CONCAT('b', B.door)) = LOWER(A.code)"
    ),
    "comparison turned round": BASE.replace("A.door < B.door", "B.door > A.door"),
    "an alias": BASE.replace("B.", "visit.").replace(" B ", " visit ").replace(", B)", ", visit)"),
    "aliases exchanged": BASE.replace("A", "\0")
    .replace("B.", "A.")
    .replace(" B ", " A ")
    .replace(", B)", ", A)")
    .replace("\0.", "B.")
    .replace("badge \0", "badge B")
    .replace("(\0", "(B")
    .replace("\0", "A"),
    "AS": BASE.replace("badge A", "badge AS A").replace("AS entered_by", "entered_by"),
    "order of conditions": BASE.replace("A.person = B.person AND A.door < B.door", "A.door < B.door")
    .replace("A.code <> 'x' AND", "")
    .replace("< 100", "< 100 AND A.person = B.person AND A.code <> 'x'"),
    "another operator": BASE.replace("<> 'x'", "!= 'x'").replace("= B.person", "== B.person"),
    "JOIN": BASE.replace("badge A, visits B", "badge A JOIN visits B ON A.person = B.person").replace(
        "A.person = B.person AND A.door", "A.door"
    ),
}


@pytest.mark.parametrize("spelling", SAME)
def test_another_spelling_goes_on(spelling: str) -> None:
    assert SAME[spelling] != BASE
    goes_on(BASE, SAME[spelling])
    goes_on(SAME[spelling], BASE)


OTHERS = {
    "a window": (BASE.replace("20 SECONDS", "21 SECONDS"), "«window: B - A <= 20 s», this one has"),
    "a bound": (BASE.replace("WINDOW", "DWINDOW"), "«window: "),
    "a filter": (BASE.replace("'x'", "'X'"), "A: filters"),
    "a filter less": (BASE.replace("A.code <> 'x' AND", ""), "A: filters"),
    "a key": (BASE.replace("A.person = B.person", "A.person = B.door"), "B: columns"),
    "a key less": (BASE.replace("A.person = B.person AND", ""), "B: columns"),
    "a comparison": (BASE.replace("A.door < B.door", "A.door <= B.door"), ""),
    "a comparison the other way": (BASE.replace("A.door < B.door", "A.door > B.door"), ""),
    "a condition": (BASE.replace("< 100", "< 101"), "«100», this one has «101»"),
    "a condition less": (BASE.replace("AND A.door + B.door < 100", ""), "A: columns"),
    "a column": (BASE.replace("A.tags", "A.level"), ""),
    "a column more": (BASE.replace("A.tags", "A.tags, A.level"), ""),
    "the name of a column": (BASE.replace("entered_by", "door"), "«entered_by», this one has «door»"),
    "the order of columns": (
        BASE.replace("A.person, B.door AS entered_by", "B.door AS entered_by, A.person"),
        "",
    ),
    "a function": (BASE.replace("lower(A.code)", "upper(A.code)"), ""),
    "DISTINCT": (BASE.replace("SELECT", "SELECT DISTINCT"), "nothing, this one has «distinct»"),
    "a clause behind": (BASE + " LIMIT 5", "limit 5"),
    "another stream": (BASE.replace("visits B", "taps B"), ""),
    "streams exchanged": (BASE.replace("badge A, visits B", "visits B, badge A"), ""),
    "a stream more": (
        BASE.replace("visits B", "visits B, taps T").replace(
            "= 20 SECONDS", "= 20 SECONDS AND WINDOW (B, T) = 5 s"
        ),
        "it had «2 streams, method multiway», this one has «3 streams",
    ),
    "a delay": (BASE.replace("badge A", "badge WATERMARK at DELAY OF INTERVAL 9 SECONDS AS A"), "delay 9 s"),
    "an alternative": (
        BASE.replace(
            "WINDOW (A, B) = 20 SECONDS", "(DWINDOW (A, B) = 20 SECONDS OR DWINDOW (B, A) = 20 SECONDS)"
        ),
        "",
    ),
}


@pytest.mark.parametrize("change", OTHERS)
def test_another_meaning_is_refused(change: str) -> None:
    text, words = OTHERS[change]
    before, kept = planned(BASE)
    _, own = planned(text, kept, tuple(each.layout for each in before))
    with pytest.raises(WJoinError) as refused:
        refuse_other(checked(kept), own)
    assert refused.value.code == "WJ702"
    assert words in refused.value.message


EXCHANGED = """
SELECT A.person, B.door FROM badge A
LEFT JOIN (visits B JOIN taps T ON B.person = T.person) ON A.person = B.person
WINDOW (A, B) = 20 SECONDS AND WINDOW (B, T) = 5 SECONDS
"""


@pytest.mark.parametrize("told", [True, False])
def test_a_checkpoint_in_other_stages_is_refused_with_what_to_do(*, told: bool) -> None:
    """As an earlier version has laid it out, with the sides of the LEFT JOIN exchanged."""
    before, own = planned(EXCHANGED)
    kept = checked(json.loads(json.dumps(own)))
    join = kept["joins"][0]
    join["stages"][-1]["plan"] = "0123"
    if told:
        name, _, sides = join["words"][-1].partition(": ")
        join["words"][-1] = f"{name}: {' x '.join(sides.split(' x ')[::-1])}"
    exchanged = replace(before[0].layout, stages="$1 [$1.person] x $0 [$0.person]")
    _, now = planned(EXCHANGED, kept, (exchanged,))
    assert now["joins"] == own["joins"]
    with pytest.raises(WJoinError) as refused:
        refuse_other(kept, now)
    assert refused.value.code == "WJ702"
    assert "has the state of this statement in other stages" in refused.value.message
    assert ("it had «stage 2: [B.person] x [A.person]»" in refused.value.message) is told
    assert "new checkpoint folder" in refused.value.help


def turned(each: Relation) -> Relation:
    return replace(each, columns=each.columns[::-1])


def test_the_order_of_a_stream_s_columns_is_no_meaning() -> None:
    goes_on(BASE, BASE, turned)
    goes_on(
        BASE.replace("A.person, B.door AS entered_by, A.tags", "*"),
        BASE.replace("A.person, B.door AS entered_by, A.tags", "*"),
        turned,
    )


NESTED = """
SELECT J.person, count(*) AS found FROM (
  SELECT A.person, B.door, A.at FROM badge A JOIN visits B ON A.person = B.person WINDOW (A, B) = 5 SECONDS
) J, taps T WINDOW (J, T) = 1 MINUTE WHERE J.person = T.person AND J.door < T.door GROUP BY J.person
"""


def test_joins_inside_each_other() -> None:
    renamed = NESTED.replace("A.", "X.").replace(" A ", " X ").replace("(A,", "(X,")
    goes_on(NESTED, renamed)
    goes_on(NESTED, NESTED.replace("J.", "K.").replace(") J", ") K").replace("(J,", "(K,"))
    goes_on(NESTED, NESTED.lower())
    before, kept = planned(NESTED)
    _, own = planned(NESTED.replace("count(*)", "sum(T.door)"), kept, tuple(each.layout for each in before))
    with pytest.raises(WJoinError, match="another statement"):
        refuse_other(checked(kept), own)
    _, own = planned(NESTED.replace("5 SECONDS", "6 SECONDS"), kept, tuple(each.layout for each in before))
    with pytest.raises(WJoinError, match="B - A <= 5 s"):
        refuse_other(checked(kept), own)


def test_a_part_that_the_other_lacks_is_told_without_names_of_ours() -> None:
    """As where another statement takes its results of a join that no set shares."""
    _, kept = planned(NESTED)
    own = {**kept, "meaning": {**kept["meaning"], "statement of more": kept["meaning"]["statement"]}}
    with pytest.raises(
        WJoinError, match=r"it had nothing, this one has «select J.person.*from … group by J.person»"
    ) as refused:
        refuse_other(checked(kept), own)
    assert "__wjoin" not in refused.value.message


def test_another_state_format_is_refused_whatever_else_is_kept() -> None:
    _, own = planned(BASE)
    with pytest.raises(WJoinError, match="has state format 7; this version of wjoin reads 8"):
        refuse_other(checked({"state": 7}), own)
    with pytest.raises(ValueError, match="lacks"):
        checked({"state": STATE_FORMAT, "joins": [{}]})
