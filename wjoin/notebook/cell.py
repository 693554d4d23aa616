"""One run of a cell: its statements in order, and what each of them shows."""

import itertools
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from wjoin.context import Asked
from wjoin.executor.spark.beginning import begin
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.statement_kinds import Explain, ExplainSet, InsertInto, Statement, StatementSet, StopQuery
from wjoin.notebook.cell_options import CellOptions
from wjoin.notebook.html_tables import first_rows, preformatted
from wjoin.notebook.interrupts import Result, interruptible
from wjoin.notebook.live_cells import LiveCell, LiveCells
from wjoin.notebook.screen import CellOutputs
from wjoin.notebook.selects import SelectRows
from wjoin.notebook.shown_errors import Interrupted
from wjoin.notebook.variables import parameters
from wjoin.planner.explain.markup import Markup, join, tag
from wjoin.queries.running import Running
from wjoin.session import Session
from wjoin.settings.triggers import processing_time
from wjoin.spark.spark_failures import placed
from wjoin.statements.explanation import Explanation
from wjoin.statements.inserts import plan_insert, target_sink
from wjoin.statements.outcome import Selected, outcome
from wjoin.statements.sharing import in_sets
from wjoin.statements.statement_sets import plan_set, set_name
from wjoin.statements.streaming_rows import refuse_actions

_numbers = itertools.count()


@dataclass(frozen=True)
class Plan:
    """An explanation: drawings, and the text, which is ``opened`` where it says more than they do."""

    explained: Explanation
    opened: bool

    def text(self) -> str:
        """Return the plan as text."""
        return str(self.explained)

    def html(self) -> str:
        """Return the plan as HTML."""
        text = preformatted(str(self.explained))
        if not self.explained.described:
            return text
        opened = "open" if self.opened else None
        as_text = tag("details", tag("summary", "The plan as text"), text, open=opened)
        return join(Markup(self.explained._repr_html_()), as_text)


@dataclass
class Cell:
    """The statements of a cell, with what they run on and where they are shown."""

    session: Session
    text: str
    source_name: str
    options: CellOptions
    variables: Mapping[str, Any]
    screen: CellOutputs
    live: LiveCells
    _begun: list[Running] = field(default_factory=list)
    _statements: tuple[Statement, ...] = ()

    def run(self) -> Any:
        """Run the statements; return what the last one made: a DataFrame, a query or an explanation.

        An interrupt of a SELECT over streams ends it, and the cell. Raises WJoinError for an error of a
        statement, and Interrupted where another one was interrupted.
        """
        self._statements = parse_script(self.text, self.source_name)
        if not self._statements:
            raise WJoinError("WJ606", "there is no statement", help="write one, or use %wjoin --help")
        if self.options.trigger is not None:
            processing_time(self.options.trigger, "--trigger")
        self.session.context.queries.begin_script()
        made: Any = None
        for statement in in_sets(self._asked_of_inserts(), self._statements):
            with placed(self.text, statement.span):
                made = self._run(statement)
            if made is _STOPPED:
                return None
        return made

    def _run(self, statement: Statement) -> Any:
        asked = self.session.context.asked(self.text, parameters(self.text, statement, self.variables))
        shown = self.options.show or statement.span != self._statements[-1].span
        note, earlier = "", self._earlier_of(asked, statement)
        if earlier is not None:
            again = self.options.once or self.options.restart
            if not again and self._same(earlier, statement, asked.params):
                self._attach(earlier, asked.params)
                return earlier.query
            with asked.queries.replacing(earlier):
                # What is wrong with the new statement shall not stop the old one.
                self._plan(asked, statement)
            earlier.stop()
            self.live.draw()
            note = f"It replaces the query that ran since {_began(earlier)}."
        how = {"checkpoint": self.options.checkpoint, "trigger": self.options.trigger}
        found = self._wait(lambda: outcome(asked, statement, once=self.options.once, **how))
        match found:
            case Running():
                return self._follow(found, asked.params, note)
            case Selected(frame=frame) if frame.isStreaming:
                return self._select(asked, statement, found, shown)
            case Selected(frame=frame) if shown:
                self.screen.show(self._wait(lambda: first_rows(frame, self.options.limit)))
            case Explanation() if shown:
                more = isinstance(statement, Explain) and statement.mode in ("ANALYZE", "FORMATTED")
                # What the statements of a set share is no drawing.
                self.screen.show(Plan(found, more or isinstance(statement, ExplainSet)))
        if isinstance(statement, StopQuery):
            self.live.draw()
        return found.frame if isinstance(found, Selected) else found

    def _wait(self, work: Callable[[], Result]) -> Result:
        return interruptible(self.session.spark, work)

    def _follow(self, running: Running, values: Mapping[str, Any], note: str) -> Any:
        """Show a query into a sink that has just been started; with ``--once`` to its end."""
        self._begun.append(running)
        cell = self.live.follow(running, values, note=note, waited_for=self.options.once)
        if self.options.once:
            cell.wait()
            if running.stopped:
                raise Interrupted
            self.session.settle()
        return running.query

    def _attach(self, running: Running, values: Mapping[str, Any]) -> None:
        """Show a query that runs already."""
        self._begun.append(running)
        note = f"It has been running since {_began(running)}: nothing was started."
        self.live.follow(running, values, note=note)

    def _asked_of_inserts(self) -> Asked:
        """Return what the INSERT INTOs of the cell are about, to see which of them may be a set."""
        inserts = [each for each in self._statements if isinstance(each, InsertInto)]
        named = [parameters(self.text, each, self.variables) for each in inserts]
        return self.session.context.asked(self.text, dict(ChainMap(*named)))

    def _earlier_of(self, asked: Asked, statement: Statement) -> Running | None:
        """Return the running query of an earlier run of an INSERT INTO or a statement set (``_earlier``)."""
        if isinstance(statement, StatementSet):
            name = set_name(asked, statement)
            return self._earlier(statement, lambda each: each.of_set is not None and each.of_set.name == name)
        sink = target_sink(asked.catalog, statement) if isinstance(statement, InsertInto) else None
        return None if sink is None else self._earlier(statement, lambda each: each.sink == sink.name)

    def _plan(self, asked: Asked, statement: Statement) -> None:
        """Plan an INSERT INTO or a statement set. Raises WJoinError where it cannot be started."""
        if isinstance(statement, StatementSet):
            plan_set(asked, statement, self.options.checkpoint)
        elif isinstance(statement, InsertInto) and (sink := target_sink(asked.catalog, statement)):
            plan_insert(asked, statement, sink, self.options.checkpoint)

    def _earlier(self, statement: Statement, alike: Callable[[Running], bool]) -> Running | None:
        """Return the running query of an earlier run of this statement, or of what stood in its place then.

        ``alike``: a query into the same sink, that of a set of the same name, or of a SELECT, which is one in
        the same cell. Where the cell has several statements for a sink, each has its own query.
        """
        running = [
            each
            for each in self.session.running
            if alike(each) and each.query.isActive and not any(each is begun for begun in self._begun)
        ]
        own = statement.span.of(self.text)
        same = [each for each in running if each.statement.of(each.text) == own]
        others = {each.span.of(self.text) for each in self._statements if each is not statement}
        changed = [
            each
            for each in running
            if each.statement.of(each.text) not in others and (each.sink or self._of_this_cell(each))
        ]
        return next(iter(same or changed), None)

    def _of_this_cell(self, running: Running) -> bool:
        cell = self.live.of(running)
        return cell is not None and cell.cell_id is not None and cell.cell_id == self.screen.cell_id

    def _same(self, earlier: Running, statement: Statement, values: Mapping[str, Any]) -> bool:
        cell = self.live.of(earlier)
        with_values = {} if cell is None else cell.parameters
        return earlier.statement.of(earlier.text) == statement.span.of(self.text) and with_values == values

    def _select(self, asked: Asked, statement: Statement, selected: Selected, shown: bool) -> Any:
        """Run a SELECT over streams, and show its rows as they come."""
        once, background = self.options.once, self.options.background
        frame = refuse_actions(selected.frame)
        if statement.span == self._statements[-1].span and self.options.keep is not None and once:
            return self._collected(asked, statement, selected, shown)
        if not shown:
            return frame
        earlier = self._earlier(statement, lambda each: each.sink is None)
        if earlier is not None:
            again = self.options.restart or not background
            if not again and self._same(earlier, statement, asked.params):
                self._attach(earlier, asked.params)
                return frame
            earlier.stop()
            self.live.draw()
        rows = SelectRows(frame, self.options.limit, first=once)
        query = rows.start(asked.settings.trigger(self.options.trigger))
        cell = self._watch(selected.running(asked, statement, query), asked.params, rows)
        if background and not once:
            return frame
        cell.wait()
        return _STOPPED if cell.running.stopped else frame

    def _watch(self, running: Running, values: Mapping[str, Any], rows: SelectRows | None = None) -> LiveCell:
        """Show a SELECT over streams that has just been started."""
        queries = self.session.context.queries
        running.name = queries.free_name("select")
        queries.add(running)
        self._begun.append(running)
        waited_for = self.options.once or not self.options.background
        return self.live.follow(running, values, rows=rows, waited_for=waited_for)

    def _collected(self, asked: Asked, statement: Statement, selected: Selected, shown: bool) -> DataFrame:
        """Return a table of all the rows that a SELECT finds in what its sources hold."""
        name = f"wjoin_kept_{next(_numbers)}"
        writer = selected.frame.writeStream.format("memory").queryName(name).outputMode("append")
        query = begin(self.session.spark, writer.trigger(availableNow=True).start, "the SELECT")
        cell = self._watch(selected.running(asked, statement, query), asked.params)
        cell.wait()
        if cell.running.stopped:
            raise Interrupted
        found = self.session.spark.table(name)
        if shown:
            self.screen.show(self._wait(lambda: first_rows(found, self.options.limit)))
        return found


def _began(running: Running) -> str:
    return f"{running.started.astimezone():%H:%M:%S}"


_STOPPED = object()
"""What a SELECT has made that was interrupted."""
