"""A statement with W-joins to a statement that Spark runs, over the joined DataFrames.

The innermost W-join is planned and cut out of the text first; what is left is read
again until no W-join remains. The user's own text around the joins reaches Spark as written.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from wjoin.executor.spark.compile import Counting, compile_plan
from wjoin.executor.spark.meter import Meter
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import CreateView, Explain, FromItem, InsertInto, Query, SelectBlock, Statement
from wjoin.kept import Kept
from wjoin.options import require_streaming
from wjoin.planner.catalog import Relation
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.names import suggestion
from wjoin.planner.physical import Method, PhysicalPlan
from wjoin.planner.plan import Edit, PlannedSelect, apply_edits, plan_select
from wjoin.planner.sequences import UNKNOWN
from wjoin.relations import SparkTypes, describe, first_line
from wjoin.streams import Declarations, StreamDeclaration

_PLACEHOLDER = re.compile(r"\b__wjoin_input_(\d+)\b")


@dataclass
class Rewriting:
    """A statement on its way: its present text, the plans made, and what they join.

    A plan is compiled when its rows are first asked for, so that EXPLAIN need not wait for that;
    ``countings`` say what is counted of each. ``kept`` is what lies beside the checkpoint of the
    statement; it is asked where a join streams. Where the statement is ``metered``, each plan has a
    meter that counts what it does over tables.
    """

    spark: SparkSession
    run_spark: Callable[..., DataFrame]
    declarations: Declarations
    parameters: dict[str, object]
    settings: dict[str, str]
    costs: CostSettings
    original: str
    text: str
    kept: Kept | None = None
    metered: bool = False
    planned: list[PlannedSelect] = field(default_factory=list)
    inputs: list[list[DataFrame]] = field(default_factory=list)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    passes: list[tuple[Edit, ...]] = field(default_factory=list)
    countings: list[Counting] = field(default_factory=list)

    def run(self) -> DataFrame:
        """Return the statement's DataFrame."""
        return self.query(self.text)

    @property
    def plans(self) -> dict[int, PhysicalPlan]:
        """The plans by the numbers under which they are compiled, innermost first."""
        pairs = zip(self.countings, self.planned, strict=True)
        return {counting.query: planned.physical for counting, planned in pairs}

    @property
    def meters(self) -> list[Meter]:
        """The meters of the plans of a metered statement, innermost first."""
        return [each.meter for each in self.countings if each.meter is not None]

    def query(self, text: str) -> DataFrame:
        """Run a piece of Spark SQL that may read the joined DataFrames."""
        arguments: dict[str, object] = {"args": self.parameters} if self.parameters else {}
        numbers = {int(number) for number in _PLACEHOLDER.findall(text)}
        if self.planned and numbers:
            text = text.replace("{", "{{").replace("}", "}}")
            text = _PLACEHOLDER.sub(lambda found: "{" + found.group() + "}", text)
            arguments |= {_placeholder(number): self._compiled(number) for number in numbers}
        return self.run_spark(text, **arguments)

    def _compiled(self, number: int) -> DataFrame:
        """Return the joined rows of a plan."""
        name = _placeholder(number)
        if name not in self.frames:
            self.frames[name] = compile_plan(
                self.planned[number].physical, self.inputs[number], self.countings[number]
            )
        return self.frames[name]

    def join_all(self) -> None:
        """Plan every W-join of the statement, innermost first."""
        while True:
            statement = parse_statement(self.text)
            blocks = _blocks(statement)
            if not blocks:
                return
            block = _innermost(blocks)
            try:
                self._join(block)
            except WJoinError as error:
                raise self._placed(error) from error.__cause__

    def _join(self, block: SelectBlock) -> None:
        inputs, relations, aliases = [], [], []
        for item in block.items:
            frame = self._frame(block, item)
            inputs.append(frame)
            known = self.declarations.known(item.parts[0].name) if len(item.parts) == 1 else {}
            relation = describe(frame, self._declaration(block, item), known)
            relations.append(
                replace(relation, watermark=relation.watermark or self._watermarked(block, item))
            )
            aliases.append(item.alias.name if item.alias else item.parts[-1].name if item.parts else "")
        sequences = UNKNOWN
        if self.kept is not None and any(each.streaming for each in relations):
            sequences = self.kept.sequence(len(self.planned))
            relations = [self._measured(*each) for each in zip(relations, aliases, strict=True)]
        placeholder = _placeholder(len(self.planned))
        types = SparkTypes(self.spark, aliases, inputs)
        planned = plan_select(
            self.text,
            block,
            tuple(relations),
            types,
            self.parameters,
            placeholder,
            self.settings,
            self.costs,
            sequences,
        )
        if planned.physical.streaming:
            require_streaming(self.spark)
        self.inputs.append(inputs)
        self.planned.append(planned)
        measured = self.kept is not None and self.kept.has_place
        self.countings.append(Counting(measured=measured, meter=Meter() if self.metered else None))
        self.passes.append(planned.edits)
        self.text = apply_edits(self.text, planned.edits, Span(0, len(self.text)))

    def _measured(self, relation: Relation, alias: str) -> Relation:
        """Return a relation with what earlier runs of the statement measured of it."""
        joins, place = self.kept.measured() if self.kept is not None else [], len(self.planned)
        return replace(relation, measured=joins[place].get(alias) if place < len(joins) else None)

    def _frame(self, block: SelectBlock, item: FromItem) -> DataFrame:
        declared = self._declared(block, item)
        if declared is not None and declared.frame is not None:
            return declared.frame
        text = self._with(block, item)
        try:
            frame = self.query(text)
            if item.streaming and item.parts and not frame.isStreaming:
                frame = self.spark.readStream.table(item.relation.of(self.text))
            return frame
        except (AnalysisException, ParseException) as error:
            message = first_line(error)
            if "TABLE_OR_VIEW_NOT_FOUND" in message and item.parts:
                name = ".".join(part.name for part in item.parts)
                known = [each.name for each in self.spark.catalog.listTables()]
                remedy = suggestion(name, known)
                raise WJoinError(
                    "WJ214", f"there is no table, view or stream {name}", span=item.relation, help=remedy
                ) from error
            raise WJoinError("WJ607", f"Spark cannot read this: {message}", span=item.relation) from error

    def _with(self, block: SelectBlock, item: FromItem) -> str:
        text = f"SELECT * FROM {item.relation.of(self.text)}"
        for clause in reversed(block.withs):
            text = f"{clause.of(self.text)} {text}"
            if clause is not block.withs[0]:
                text = f"SELECT * FROM ({text})"
        return text

    def _declared(self, block: SelectBlock, item: FromItem) -> StreamDeclaration | None:
        """Return the declaration of a FROM item that is a stream by its name."""
        named = len(item.parts) == 1 and not block.withs
        return self.declarations.stream(item.parts[0].name) if named else None

    def _declaration(self, block: SelectBlock, item: FromItem) -> StreamDeclaration | None:
        """Return what is known of the time of a FROM item: declared, or derived from what it reads."""
        declared = self._declared(block, item)
        if declared is not None:
            return declared
        text = self._with(block, item)
        delays = [output_delay(self.planned[int(n)]) for n in _PLACEHOLDER.findall(text)]
        derived = self.declarations.derived("", text)
        if derived is not None:
            delays.append(derived.delay)
        if not delays:
            return None
        if any(delay is None for delay in delays) and item.watermark is None:
            raise WJoinError(
                "WJ205",
                "how far the rows of this relation may be out of order is not bounded",
                span=item.span,
                help="say it: … WATERMARK column DELAY OF INTERVAL n SECONDS AS alias",
            )
        return StreamDeclaration(
            "", None, max((delay for delay in delays if delay is not None), default=0), "view"
        )

    def _watermarked(self, block: SelectBlock, item: FromItem) -> bool:
        """Return whether a FROM item reads a W-join whose result has a watermark of Spark's."""
        inner = [self.planned[int(n)].physical for n in _PLACEHOLDER.findall(self._with(block, item))]
        return any(
            plan.streaming and (plan.method is Method.NATIVE or "time" in plan.match) for plan in inner
        )

    def _placed(self, error: WJoinError) -> WJoinError:
        """Return an error with its place in the text as the user wrote it."""
        if error.span is None:
            return error
        start, end = error.span.start, error.span.end
        for edits in reversed(self.passes):
            start, end = _before(edits, start), _before(edits, end)
        placed = WJoinError(error.code, error.message, span=Span(start, max(start + 1, end)), help=error.help)
        return placed.within(self.original)


def _placeholder(number: int) -> str:
    """Return what stands for the joined rows of a plan in the rewritten text."""
    return f"__wjoin_input_{number}"


def output_delay(planned: PlannedSelect) -> int | None:
    """Return how far any time column of a join's results may lie behind the greatest one emitted.

    A result is completed by a row of some stream i not older than M_i - delay_i, M_i being the
    greatest time seen on i. A member a then satisfies a >= t_i - upper[a][i], and no emitted a
    exceeds M_i + upper[i][a]. A static relation's rows complete nothing. None when that has no
    bound.
    """
    plan = planned.physical
    delays = []
    for a in range(len(plan.streams)):
        for i in plan.staged:
            back, forth = plan.upper[a][i], plan.upper[i][a]
            if back is None or forth is None:
                return None
            delays.append(plan.streams[i].delay + back + forth)
    return max(*delays, plan.match_delay or 0)


def _blocks(statement: Statement) -> tuple[SelectBlock, ...]:
    if isinstance(statement, CreateView | Explain | InsertInto):
        statement = statement.body
    return statement.blocks if isinstance(statement, Query) else ()


def _innermost(blocks: tuple[SelectBlock, ...]) -> SelectBlock:
    block = blocks[0]
    while block.nested:
        block = block.nested[0]
    return block


def _before(edits: tuple[Edit, ...], place: int) -> int:
    """Return where a place in an edited text stood before the edits."""
    shift = 0
    for edit in edits:
        start = edit.start + shift
        if place < start:
            break
        if place < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return place - shift
