"""Conditions over two streams a and b with a column of every type, read as the planner does."""

from sqlglot import exp

from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Column
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.readable import ReadCondition, Unread, read_condition_tree
from wjoin.planner.text.pieces import function_name, read_condition
from wjoin.planner.text.scope import StreamColumn

TYPES = {
    "y": "tinyint",
    "h": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "m": "decimal(10,2)",
    "w": "decimal(20,6)",
    "u": "decimal(38,0)",
    "s": "string",
    "b": "boolean",
    "t": "date",
    "ts": "timestamp",
    "n": "timestamp_ntz",
}


def read(text: str) -> ReadCondition | Unread:
    """Return a condition as the join can test it."""
    piece = read_condition(text, Span(0, len(text)))

    def column(node: exp.Column) -> StreamColumn | None:
        stream, name = (part.name for part in node.parts)
        return StreamColumn("ab".index(stream), Column(name, TYPES[name]))

    return read_condition_tree(piece.tree, Meaning(column, lambda call: function_name(text, piece, call), {}))
