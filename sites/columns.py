"""Columns of streams: declared as Spark declares them, and kept in types of Arrow that Spark reads."""

import re
from collections.abc import Iterator

import pyarrow as pa

from wjoin.grammar.errors import WJoinError

TIMESTAMP = pa.timestamp("us", tz="UTC")

_SIMPLE = {
    "BOOLEAN": pa.bool_(),
    **dict.fromkeys(("TINYINT", "BYTE"), pa.int8()),
    **dict.fromkeys(("SMALLINT", "SHORT"), pa.int16()),
    **dict.fromkeys(("INT", "INTEGER"), pa.int32()),
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), TIMESTAMP),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`|\w+)|([<>(),:]))")


def parse_columns(text: str, where: str) -> pa.Schema:
    """Read a list of columns such as ``id BIGINT, at TIMESTAMP, tags ARRAY<STRING>``.

    ``where`` names the entry in errors. Raises WJoinError WJ904.

    >>> parse_columns("id BIGINT, price DECIMAL(10, 2)", "schema").types
    [DataType(int64), Decimal128Type(decimal128(10, 2))]
    """
    reader = _Columns(text, where)
    fields = [*reader.fields("", between="")]
    names = [each.name for each in fields]
    if len(set(names)) < len(names):
        raise reader.wrong("two columns have the same name")
    return pa.schema(fields)


class _Columns:
    """Reads tokens of a list of columns, one after the other."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"{text[at:].strip()!r:.40} cannot be read")
            self._tokens.append(found[1] or found[2])
            at = found.end()

    def wrong(self, why: str) -> WJoinError:
        """Return the error of this list."""
        help = "write it as in Spark: id BIGINT, at TIMESTAMP, name STRING"
        return WJoinError("WJ904", f"{self._where}: {why}", help=help)

    def fields(self, end: str, between: str) -> Iterator[pa.Field]:
        """Yield the columns up to ``end``; ``between`` may stand between a name and a type."""
        while True:
            name = self._next("the name of a column").replace("``", "\0").strip("`").replace("\0", "`")
            if between and self._peek() == between:
                self._next("")
            yield pa.field(name, self._type())
            if self._peek() == end:
                return
            self._expect(",")

    def _type(self) -> pa.DataType:
        word = self._next("a type").upper()
        if word in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if word == "ARRAY":
            (kind,) = self._inside(1)
            return pa.list_(kind)
        if word == "MAP":
            key, value = self._inside(2)
            return pa.map_(key, value)
        if word == "STRUCT":
            self._expect("<")
            found = pa.struct([*self.fields(">", between=":")])
            self._expect(">")
            return found
        if word not in _SIMPLE:
            raise self.wrong(f"the type {word:.40} is unknown")
        return _SIMPLE[word]

    def _decimal(self) -> pa.DataType:
        if self._peek() != "(":
            return pa.decimal128(10, 0)
        self._expect("(")
        digits = [self._next("a number")]
        if self._peek() == ",":
            self._expect(",")
            digits.append(self._next("a number"))
        self._expect(")")
        if not all(each.isdecimal() for each in digits) or not 1 <= int(digits[0]) <= 38:
            raise self.wrong("a DECIMAL has 1 to 38 digits")
        return pa.decimal128(int(digits[0]), int(digits[1]) if digits[1:] else 0)

    def _inside(self, count: int) -> list[pa.DataType]:
        self._expect("<")
        found = [self._type()]
        for _ in range(count - 1):
            self._expect(",")
            found.append(self._type())
        self._expect(">")
        return found

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _next(self, what: str) -> str:
        if not self._tokens:
            raise self.wrong(f"{what} is missing at the end")
        return self._tokens.pop(0)

    def _expect(self, sign: str) -> None:
        if (found := self._next(f"'{sign}'")) != sign:
            raise self.wrong(f"'{sign}' is missing before {found:.40}")


def readable(schema: pa.Schema, where: str) -> pa.Schema:
    """Return the schema of a file in types that Spark reads. Raises WJoinError WJ904."""
    return pa.schema([pa.field(each.name, _readable(each.type, each.name, where)) for each in schema])


def _readable(kind: pa.DataType, name: str, where: str) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind in _WIDER:
        return _WIDER[kind]
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else pa.timestamp("us")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_readable(kind.value_type, name, where))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _readable(each.type, name, where)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_readable(kind.key_type, name, where), _readable(kind.item_type, name, where))
    if kind in _SIMPLE.values() or pa.types.is_decimal128(kind):
        return kind
    raise WJoinError("WJ904", f"{where}: column {name} has the type {kind}, which Spark cannot read")
