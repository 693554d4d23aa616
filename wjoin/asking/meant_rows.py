"""The rows that EXPLAIN MATCH means, and of the other streams those that could be with them in a result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from sqlglot import exp

from wjoin.asking.needs import Kind, Need, Needs
from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import MeantRows
from wjoin.planner.text.scope import quoted_if_needed
from wjoin.planner.text.trees import parse
from wjoin.spark.spark_failures import UNREAD, first_line

MOST = 20_000
"""Combinations that are compared at the most."""

_NEAREST = 5
"""Rows of a stream that are looked at where none has the key of the others."""


@dataclass(frozen=True)
class Candidates:
    """Rows of a stream: ``rows`` are some of ``found``, and the stream has ``all`` of them.

    ``condition`` is what was asked of them, empty where nothing was.
    """

    rows: DataFrame
    found: int
    all: int
    condition: str = ""


@dataclass(frozen=True)
class Reader:
    """Reads rows of the FROM items of a block, which are there as tables."""

    asked: Asked
    needs: Needs
    tables: Sequence[DataFrame]

    def run(self, text: str, frames: Mapping[int, DataFrame]) -> DataFrame:
        """Run a query in which ``{rows_n}`` stands for rows of FROM item n."""
        return self.query(text, **{f"rows_{number}": frame for number, frame in frames.items()})

    def query(self, text: str, **frames: DataFrame) -> DataFrame:
        """Run a query over DataFrames, which stand in braces in it."""
        arguments = {"args": self.asked.params} if self.asked.params else {}
        return self.asked.engine.run(text, **arguments, **frames)

    def alias(self, stream: int) -> str:
        """Return ``{rows_n} AS A`` for FROM item n."""
        return f"{{rows_{stream}}} AS {quoted_if_needed(self.needs.names[stream])}"

    def candidates(self, meant: Sequence[MeantRows]) -> list[Candidates]:
        """Return the rows of each FROM item that may be meant; of the others the nearest.

        Raises WJoinError WJ201 for a name that is not in FROM, and WJ607 for a condition that Spark cannot
        read.
        """
        by_stream = {self._number(each): each for each in meant}
        most = max(1, int(MOST ** (1 / len(self.tables))))
        found = {number: self._meant(number, each, most) for number, each in sorted(by_stream.items())}
        while len(found) < len(self.tables):
            number = self._next(found)
            found[number] = self._near(number, found, most)
        return [found[number] for number in range(len(self.tables))]

    def _number(self, meant: MeantRows) -> int:
        for number, name in enumerate(self.needs.names):
            if meant.stream.matches(name):
                return number
        remedy = f"FROM has {', '.join(self.needs.names)}"
        message = f"{meant.stream.name} is not in FROM"
        raise WJoinError("WJ201", message, span=meant.stream.span, help=remedy)

    def _meant(self, number: int, meant: MeantRows, most: int) -> Candidates:
        condition = meant.condition.of(self.asked.text).strip()
        where = f" WHERE {condition}" if condition else ""
        alias = self.alias(number)
        name = quoted_if_needed(self.needs.names[number])
        table = {number: self.tables[number]}
        try:
            rows = self.run(f"SELECT {name}.* FROM {alias}{where} LIMIT {most}", table)
            counts = self.run(f"SELECT count(*), count_if({condition or 'true'}) FROM {alias}", table)
        except UNREAD as error:
            message = f"Spark cannot read this: {first_line(error)}"
            raise WJoinError("WJ607", message, span=meant.condition) from error
        ((of_all, found),) = counts.collect()
        return Candidates(_kept(rows), found, of_all, condition)

    def _next(self, found: Mapping[int, Candidates]) -> int:
        """Return a stream that is not found yet, one that an equality links to those first."""
        left = [number for number in range(len(self.tables)) if number not in found]
        linked = (number for number in left if any(self._links(number, found)))
        return next(linked, left[0])

    def _links(self, number: int, found: Mapping[int, Candidates]) -> Iterator[tuple[Need, int]]:
        """Yield the equalities between a stream and those found, with the other stream."""
        for need in self.needs.conditions:
            if need.kind is Kind.KEY and number in need.streams:
                (other,) = (each for each in need.streams if each != number)
                if other in found:
                    yield need, other

    def _near(self, number: int, found: Mapping[int, Candidates], most: int) -> Candidates:
        """Return the rows of a stream that have the keys of those found, the nearest in time first."""
        name, table = quoted_if_needed(self.needs.names[number]), self.tables[number]
        order = self._by_time(number, found)
        for keyed in (True, False):
            tests = [
                f"EXISTS (SELECT 1 FROM {self.alias(other)} WHERE {need.test})"
                for need, other in self._links(number, found)
                if keyed
            ]
            where = f" WHERE {' AND '.join(tests)}" if tests else ""
            frames = {each: one.rows for each, one in found.items()} | {number: table}
            rows = self.run(f"SELECT {name}.* FROM {self.alias(number)}{where}", frames)
            kept = _kept(
                self.run(
                    f"SELECT {name}.* FROM {self.alias(number)}{order} LIMIT {most if tests else _NEAREST}",
                    {number: rows},
                )
            )
            if not kept.isEmpty():
                break
        return Candidates(kept, rows.count(), table.count())

    def _by_time(self, number: int, found: Mapping[int, Candidates]) -> str:
        """Return ORDER BY how far a row is from the times of those found; empty where there are none."""
        own, ends = self.needs.times[number], []
        for each, one in found.items():
            time = self.needs.times[each]
            if time is not None:
                ends += [
                    end
                    for row in self.run(
                        f"SELECT min({time}), max({time}) FROM {self.alias(each)}", {each: one.rows}
                    ).collect()
                    for end in row
                    if end is not None
                ]
        if own is None or not ends:
            return ""
        return f" ORDER BY greatest({own} - {max(ends)}, {min(ends)} - {own}, 0) NULLS LAST"

    def alone(self, number: int, condition: str) -> list[tuple[str, int]]:
        """Return each part of a condition on a stream with the number of rows that satisfy it alone."""
        alias, parts = self.alias(number), _parts(condition)
        listed = ", ".join(f"count_if({each})" for each in parts)
        (row,) = self.run(f"SELECT {listed} FROM {alias}", {number: self.tables[number]}).collect()
        return list(zip(parts, row, strict=True))


def _kept(rows: DataFrame) -> DataFrame:
    """Return a few rows as a table of their own, which is read once."""
    return rows.sparkSession.createDataFrame(rows.toArrow(), rows.schema)


def _parts(condition: str) -> list[str]:
    """Return what AND joins in a condition."""
    tree = parse(condition)
    parts = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    return [each.sql("spark") for each in parts]
