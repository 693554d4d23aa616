"""What travels of each stream: scan columns and key codes, each value once."""

from wjoin.grammar.canonical import canonical
from wjoin.planner.bind.event_time import EventTime
from wjoin.planner.conditions.conjuncts import Side
from wjoin.planner.plan.physical import KeyCode, ScanColumn, StreamScan
from wjoin.planner.shape.decompose import DraftInput
from wjoin.planner.shape.join_keys import EXACT, KeyPart, is_verifiable
from wjoin.planner.text.scope import ScopeItem, StreamColumn


class ScanBuilder:
    """Collects the scan columns and key codes of one stream.

    Add the outputs first: a column that the join needs, too, is then the same scan column.
    """

    def __init__(self, source: ScopeItem, time: EventTime | None) -> None:
        self._source = source
        self._time = time
        self._columns: list[ScanColumn] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._codes: list[KeyCode] = []
        self._keys: list[tuple[KeyPart, ...]] = []
        self._home: int | None = None

    def output(self, column: StreamColumn) -> None:
        """Add a column that the rest of the statement reads."""
        name = column.column.name
        self._add(ScanColumn(self._source.expression(name), column.column.type, name))

    def needed(self, expression: str, type_name: str) -> int:
        """Return the number of the scan column that holds a value the join needs."""
        return self._add(ScanColumn(expression, type_name, None))

    def needed_column(self, column: StreamColumn) -> int:
        """Return the number of the scan column that holds a column of the relation."""
        return self.needed(self.expression(column), column.column.type)

    def expression(self, column: StreamColumn) -> str:
        """Return the Spark expression of a column of the relation, or of a computed value."""
        return self._source.value(column)

    def _add(self, column: ScanColumn) -> int:
        number = self._numbers.setdefault((column.type, canonical(column.expression)), len(self._columns))
        if number == len(self._columns):
            self._columns.append(column)
        return number

    def code(self, draft: DraftInput) -> int:
        """Return the number of the key code of an input whose key this stream has."""
        expressions = tuple(part.text for part in draft.key)
        types = tuple(part.type for part in draft.key)
        exact = len(types) == 1 and types[0] in EXACT
        verify: tuple[int, ...] = ()
        if not exact and all(is_verifiable(each) for each in types):
            verify = tuple(self.needed(*each) for each in zip(expressions, types, strict=True))
        code = KeyCode(expressions, types, exact, verify)
        # On its way that of the home becomes a mark of what a row visits.
        known = (place for place, each in enumerate(self._codes) if each == code and place != self._home)
        place = next(known, len(self._codes))
        if place == len(self._codes):
            self._codes.append(code)
            self._keys.append(draft.key)
        return place

    def home(self) -> None:
        """Have the code of the column by which rows live at nodes, where the relation has one."""
        part = self.home_part
        if part is None:
            return
        self._home = len(self._codes)
        self._codes.append(KeyCode((part.text,), (part.type,), part.type in EXACT, ()))
        self._keys.append((part,))

    @property
    def home_part(self) -> KeyPart | None:
        """The column by which rows live at nodes, as a part of a key; None where the relation has none."""
        column = self._source.relation.home_column
        if column is None:
            return None
        own = StreamColumn(self._source.number, column)
        text = self.expression(own)
        side = Side(own.stream, text, canonical(text), own, (own,), self._source.item.span)
        return KeyPart(side, column.type, column.type)

    @property
    def codes(self) -> tuple[KeyCode, ...]:
        """The key codes so far."""
        return tuple(self._codes)

    @property
    def keys(self) -> tuple[tuple[KeyPart, ...], ...]:
        """The parts of the key that each code stands for."""
        return tuple(self._keys)

    def scan(self, filters: tuple[str, ...], meets: tuple[str, ...] = ()) -> StreamScan:
        """Return what was collected."""
        relation = self._source.relation
        late = relation.columns if relation.streaming and relation.late_into else ()
        return StreamScan(
            alias=self._source.name,
            event_time="" if self._time is None else self._time.column.name,
            delay=0 if self._time is None else self._time.delay,
            filters=filters,
            columns=tuple(self._columns),
            codes=tuple(self._codes),
            streaming=self._source.relation.streaming,
            ahead=None if self._time is None else self._time.ahead,
            shedding=None if self._time is None else self._time.shedding,
            idle_after=None if self._time is None else self._time.idle_after,
            meets=meets,
            late_into=relation.late_into if late else "",
            home=self._home,
            late=tuple(ScanColumn(self._source.expression(each.name), each.type, each.name) for each in late),
        )
