"""Relations and typing rules for tests of the planner, without Spark."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from wjoin.grammar.parser import parse_script
from wjoin.grammar.statement_kinds import CreateView, Explain, InsertInto, Query
from wjoin.grammar.syntax import FromItem, SelectBlock
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.conditions.predicate_calls import Trials
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request
from wjoin.udfs.built_in import known_predicates
from wjoin.udfs.predicate import Predicate

PLACEHOLDER = "joined"
_WIDER = ("tinyint", "smallint", "int", "bigint", "float", "double")
_CAST = re.compile(r"CAST\(.* AS ([\w(),]+)\)", re.IGNORECASE | re.DOTALL)
_FUNCTIONS = {
    "lower": "string",
    "upper": "string",
    "concat": "string",
    "abs": "bigint",
    "hash": "int",
    "date": "date",
    "round": "double",
    "struct": "struct<a:int>",
}


def relation(
    columns: str, event_time: str | None = None, delay: int = 2_000_000, streaming: bool = True
) -> Relation:
    """Return a relation of ``name type`` pairs, separated by semicolons."""
    pairs = [each.split(maxsplit=1) for each in columns.split(";")]
    delays = {name.lower(): Delay(delay) for name, _ in pairs}
    return Relation(tuple(Column(name, kind) for name, kind in pairs), event_time, delays, streaming)


CAMERA = "obj_id bigint;ts timestamp;frame string;speed double;box struct<x:int,y:int>"
RELATIONS = {
    "camera1": relation(CAMERA),
    "camera2": relation(CAMERA, delay=5_000_000),
    "camera3": relation(CAMERA, delay=0),
    "watermarked": replace(relation(CAMERA), watermark=True),
    "badge": relation(
        "person int;code string;door smallint;at timestamp;tags array<string>;level decimal(10,2)"
    ),
    "visits": relation("person int;door int;entered timestamp;left_at timestamp"),
    "taps": relation("person int;door int;entered timestamp;left_at timestamp", "left_at"),
    "plant": relation("unit int;day date;reading float;at timestamp_ntz;flags map<string,int>"),
    "ticks": relation("n bigint;v int;w int;name string", "n", 3),
    "counts": relation("n bigint;v int;name string"),
    "clicks": relation("user_id bigint;id bigint;count int;status string"),
    "epochs": relation("user_id bigint;event_time int;ms bigint"),
    "millis": relation("user_id bigint;createdAtMs bigint"),
    "iso": relation("user_id bigint;status string;created_at string"),
    "floats": relation("id bigint;t double"),
    "days": relation("id bigint;date date"),
    "texts": relation("person string;ts timestamp"),
    "words": relation("word string"),
    "names": relation("id bigint;name string", streaming=False),
    "words2": relation("word string", streaming=False),
    "people": relation("id bigint;name string;created_at string", streaming=False),
    "orders": relation("id bigint;placed timestamp;paid timestamp", streaming=False),
    "registered": relation("id bigint;since timestamp", streaming=False),
    "declared_badly": relation("person int;word string;ts timestamp", "word"),
    "collated": relation("name string collate UTF8_LCASE;ts timestamp"),
    "twice": relation("x int;x int;ts timestamp"),
    "table1": relation(CAMERA, streaming=False),
    "table2": relation(CAMERA, streaming=False),
    "odd names": Relation(
        (Column("first name", "string"), Column("ts", "timestamp"), Column("Select", "int")),
        None,
        {"ts": Delay(0)},
        True,
    ),
}


PREDICATES = {
    "similar": Predicate("similar", lambda left, right: left, "double", cost_us=1000, selectivity=0.01),
    "linked": Predicate("Linked", lambda left, right, limit=1: left),
}


@dataclass(frozen=True)
class FakeTypes:
    """A small table in the place of Spark's typing rules."""

    relations: tuple[Relation, ...]

    def of(self, stream: int, expression: str) -> str:
        """Return the type of a cast, a known function, a column, or bigint."""
        if cast := _CAST.fullmatch(expression.strip()):
            return cast[1].lower()
        if (name := expression.split("(")[0].strip().lower()) in _FUNCTIONS:
            return _FUNCTIONS[name]
        return "bigint"

    def common(self, first: str, second: str) -> str | None:
        """Return the wider of two numeric types; dates widen to timestamps, strings to nothing."""
        if first in _WIDER and second in _WIDER:
            return _WIDER[max(_WIDER.index(first), _WIDER.index(second))]
        if {first, second} == {"date", "timestamp"}:
            return "timestamp"
        if any(each.startswith("decimal") for each in (first, second)) and {first, second} & set(_WIDER):
            return "decimal(22,2)"
        if "string" in (first, second) and {first, second} & set(_WIDER):
            return second if first == "string" else first
        return None

    def fails_on_overflow(self) -> bool:
        """Return that it does, as Spark in its ANSI mode."""
        return True

    def time_zone(self) -> str:
        """Return the time zone in which no clock is put forward."""
        return "UTC"


def first_block(sql: str) -> SelectBlock:
    """Return the innermost first block of the first statement."""
    statement = parse_script(sql)[0]
    while isinstance(statement, CreateView | Explain | InsertInto):
        statement = statement.body
    assert isinstance(statement, Query), "the statement has no window clause"
    block = statement.blocks[0]
    while block.nested:
        block = block.nested[0]
    return block


def relation_of(item: FromItem) -> Relation:
    """Return the relation of a FROM item; a subquery has the columns of camera1."""
    return RELATIONS[item.parts[-1].name.lower()] if item.parts else RELATIONS["camera1"]


def plan(
    sql: str, parameters: Mapping[str, object] | None = None, trials: Trials | None = None
) -> PlannedSelect:
    """Plan the first block of a statement over the catalogue."""
    block = first_block(sql)
    relations = tuple(relation_of(item) for item in block.items)
    asked = Request(
        sql,
        block,
        relations,
        FakeTypes(relations),
        PLACEHOLDER,
        parameters or {},
        predicates={**known_predicates(), **PREDICATES},
        trials=trials,
    )
    return plan_select(asked)
