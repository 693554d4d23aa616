"""Names of columns that Spark invents: those that it would give over the streams themselves.

The joined rows have a STRUCT for each stream, and names invented over them would tell of it.
"""

from collections.abc import Callable, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.grammar.syntax import FromItem, SelectBlock
from wjoin.planner.bind.select_list import ResultColumn
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.pieces import read_select_list, read_tail


def invented_names(
    text: str,
    block: SelectBlock,
    outputs: Sequence[ResultColumn],
    inputs: Sequence[DataFrame],
    kind: TimeKind,
    run: Callable[[str, Mapping[str, DataFrame]], DataFrame],
) -> tuple[Edit, ...]:
    """Return the edits that give the columns of a block the names that Spark would give them.

    Spark is asked for those of the same SELECT over the streams, without the window clause: ``run`` takes
    its text and what its ``{names}`` stand for. Where it cannot tell, as inside the functions of a
    declarative pipeline, it invents others.
    """
    unnamed = [(place, each.unnamed) for place, each in enumerate(outputs) if each.unnamed is not None]
    if not unnamed:
        return ()
    select, frames = _over_streams(text, block, inputs, kind)
    try:
        columns = run(select, frames).columns
    except PySparkException:
        return ()
    if len(columns) != len(outputs):
        return ()
    return tuple(Edit(span.end, span.end, f" AS {quoted(columns[place])}") for place, span in unnamed)


def _over_streams(
    text: str, block: SelectBlock, inputs: Sequence[DataFrame], kind: TimeKind
) -> tuple[str, dict[str, DataFrame]]:
    """Return a block without the window clause, and what the names in it stand for."""
    calls = [*read_select_list(text, block.select_list).matches]
    if block.tail.of(text).strip():
        calls += read_tail(text, block.tail).matches
    edits = [Edit(call.span.start, call.span.end, f"`match_{call.what}()`") for call in calls]
    edits += [Edit(hint.span.start, hint.span.end, "") for hint in block.hints]
    edits += [Edit(span.start, span.end, "") for span in block.window_spans]
    for each in block.using:
        if each.columns is None and block.items[each.right].kind.one_sided:
            # Spark has no NATURAL SEMI or ANTI JOIN; names of the left side are the same without it.
            edits.append(Edit(each.span.start, each.span.start + len("NATURAL"), ""))
    for number, item in enumerate(block.items):
        edits += _relation(number, item)
    frames = {_name(number): frame for number, frame in enumerate(inputs)}
    values = {f"match_{call.what}()": _value(call.what, kind) for call in calls}
    if values:
        columns = (F.lit(None).cast(type_name).alias(name) for name, type_name in values.items())
        frames[_name(0)] = inputs[0].select("*", *columns)
    select = apply_edits(text, edits, block.span).replace("{", "{{").replace("}", "}}")
    for name in frames:
        select = select.replace(name, f"{{{name}}}")
    return select, frames


def _relation(number: int, item: FromItem) -> list[Edit]:
    alias = "" if item.alias is not None else f" AS {quoted(item.parts[-1].name)}"
    edits = [Edit(item.relation.start, item.relation.end, _name(number) + alias)]
    if item.watermark is not None:
        edits.append(Edit(item.watermark.span.start, item.watermark.span.end, ""))
    if item.match is not None:
        # Of an ASOF JOIN the columns have the names that those of any join have.
        edits += [Edit(each.start, each.end, "") for each in (item.match.asof, item.match.span)]
    return edits


def _name(number: int) -> str:
    return f"__wjoin_named_{number}_"


def _value(what: str, kind: TimeKind) -> str:
    if kind is TimeKind.INTEGRAL:
        return "bigint"
    return "interval day to second" if what == "span" else kind.value
