"""What an INSERT INTO finds beside its checkpoint, read when it is first asked for."""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from wjoin.executor.state.identity import CHECKPOINT, checked, refuse_other
from wjoin.executor.state.starting import STATE, begin, resume
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import plain, typed
from wjoin.homes.homes import AUTO, Home, check_shared, home, state_workers
from wjoin.measured.begun import Begun, Columns, KnownSink
from wjoin.measured.beside import UNREACHABLE, Beside, KeptWarning
from wjoin.measured.ended_streams import ending
from wjoin.measured.recorder import Measured, Recorded, Recorder, read_measured
from wjoin.measured.utilization import Utilization, UtilizationRules
from wjoin.planner.bind.written import Written
from wjoin.planner.choose.layouts import FREE, UNKNOWN, Layout, LayoutRule, of_checkpoint
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.spark.hadoop_files import Files
from wjoin.spark.notices import warn
from wjoin.spark.spark_failures import cause

LAYOUTS = "layouts"
"""The name under which the layouts of the state of a query are kept."""

IDENTITY = "identity"
"""The name under which it is kept what a checkpoint belongs to."""

TOGETHER = "together"
"""The name under which it is kept that the joins of a query read their streams together."""

BEGUN = "statements"
"""The name under which it is kept with which statements the state began."""


def read_layouts(beside: Beside) -> list[Layout]:
    """Return the layouts of the state of a query, empty where an earlier version began it.

    Warns where they cannot be understood: the query then starts only where it has the first ones.
    Raises what Spark raises.
    """
    try:
        _, value = beside.read(LAYOUTS)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ValueError("not a list of layouts")
        return [typed(Layout, each) for each in value]
    except ValueError as error:
        message = f"the layouts of state beside {beside.folder} cannot be read: {error}"
        warnings.warn(message, KeptWarning, stacklevel=2)
        return []


class Kept:
    """What is kept beside the checkpoint of one statement; nothing where it has no checkpoint.

    ``home``: where its state shall be (``homes.homes``). ``moving``: it is about to be laid out anew,
    for which the statement is planned.
    """

    def __init__(
        self, spark: SparkSession, folder: str | None, home: str = AUTO, *, moving: bool = False
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._asked = home
        self._moving = moving
        self._beside = None if folder is None else Beside(spark, folder.rstrip("/"))

    def measured(self) -> Measured:
        """Return what earlier runs measured."""
        return self._statistics.joins

    @property
    def busy(self) -> str:
        """In words how busy the query was when that was last measured, empty where that is not known."""
        return "" if self._statistics.busy is None else self._statistics.busy.words

    def layout(self, join: int) -> LayoutRule:
        """Return which layouts of state W-join ``join`` of the statement may have, innermost first."""
        if self._beside is None:
            return UNKNOWN
        if not self.begun:
            return FREE
        kept = self._layouts[join] if join < len(self._layouts) else None
        return of_checkpoint(kept, moving=self._moving, written=self._written(join))

    def _written(self, join: int) -> Written | None:
        """Return how W-join ``join`` was written; None where an earlier version has begun the query."""
        joins = self._identity.get("written", ()) if self._identity else ()
        return typed(Written, joins[join]) if join < len(joins) else None

    def keep(
        self,
        layouts: Sequence[Layout],
        own: Mapping[str, Any],
        begun: Begun | None = None,
        *,
        together: bool = False,
    ) -> None:
        """Keep the layouts of state and the identity of a query that is about to start for the first time.

        ``begun``: its statements in words, None for a query that no other statement can go on with.
        ``together``: whether its joins read their streams together. Raises what Spark raises. A query that
        has begun keeps those it has.
        """
        if self._beside is not None and not self.begun:
            self._beside.write(IDENTITY, 1, own)
            self._beside.write(LAYOUTS, 1, plain(list(layouts)))
            if begun is not None:
                self._beside.write(BEGUN, 1, plain(begun))
            if together:
                self._beside.write(TOGETHER, 1, True)

    @cached_property
    def together(self) -> bool:
        """Whether the joins of the query may read their streams together: those of one that began so do.

        Spark knows the sources of a query by their number and order.
        """
        if self._beside is None or not self.begun:
            return True
        try:
            return self._beside.read(TOGETHER)[1] is True
        except (*UNREACHABLE, ValueError) as error:
            warn(KeptWarning(f"how {self._beside.folder} reads its streams is not known: {cause(error)}"))
            return False

    def keep_sinks(
        self,
        columns: Mapping[str, Columns],
        logged: Callable[[str], int | None],
        histories: Collection[str] = (),
    ) -> Mapping[str, KnownSink]:
        """Keep which sinks a query writes into that goes on, and return them (see ``Begun.going_on``).

        Nothing is kept of a query that is new, or whose statements are not known. Raises what Spark raises.
        """
        if self._beside is None or self.begun_with is None:
            return {}
        known = self.begun_with.going_on(columns, self.last_commit, logged, histories)
        if known != self.begun_with:
            self._beside.write(BEGUN, self._begun[0] + 1, plain(known))
        return known.sinks

    def wrote(self, sink: str) -> bool:
        """Return whether the query has committed a micro-batch with a sink, one that came later as well."""
        known = None if self.begun_with is None else self.begun_with.sink(sink)
        return known is not None and self.last_commit > known.after

    @property
    def last_commit(self) -> int:
        """Return the number of the last micro-batch that is committed, -1 for none."""
        numbers = Files.of(self._spark).numbers(f"{self._folder}/commits")
        return numbers[-1] if numbers else -1

    def refuse_other(self, own: Mapping[str, Any], checkpoint: str = CHECKPOINT) -> None:
        """Compare a statement with the one that the checkpoint belongs to.

        ``checkpoint``: in what words errors speak of it. Raises WJoinError WJ701, WJ702 or WJ703. Where
        nothing is kept, or cannot be read, the workers compare their state when data come.
        """
        if self._identity is not None:
            refuse_other(self._identity, own, checkpoint)

    def recorder(
        self, name: str, plans: Mapping[int, PhysicalPlan], rules: UtilizationRules
    ) -> Recorder | None:
        """Return what measures a query of that name, None where there is nothing to measure or no place.

        ``rules``: by what it is measured how busy it is.
        """
        counted = any(plan.stages and plan.method is Method.MULTIWAY for plan in plans.values())
        if self._beside is None or not counted:
            return None
        return Recorder(name, self._beside, plans, self._statistics, Utilization(rules))

    @property
    def has_checkpoint(self) -> bool:
        """Whether the statement has a checkpoint."""
        return self._folder is not None

    def state(self, join: int) -> Path | None:
        """Return the folder of the state of W-join ``join``, None where it is not in files."""
        folder = self.home.checkpoint
        return None if folder is None else folder / STATE / str(join)

    def prepare_state(self, plans: Iterable[PhysicalPlan]) -> None:
        """Make the folders of a new query's state in files, or compare them with what Spark has committed.

        Raises WJoinError WJ718 where they cannot be made, and WJ719 where something of the state is missing.
        """
        folder = self.home.checkpoint
        if folder is None:
            return
        joins = {str(number): state_workers(self._spark, plan) for number, plan in enumerate(plans)}
        try:
            (resume if self.begun and (folder / STATE).is_dir() else begin)(folder, joins)
        except OSError as error:
            message = f"the state cannot be written to {folder}: {error.strerror}"
            raise WJoinError("WJ718", message) from error
        check_shared(self._spark, folder / STATE)

    @property
    def folder(self) -> str | None:
        """The folder of the checkpoint, None where there is none."""
        return self._folder

    @cached_property
    def home(self) -> Home:
        """Where the state of the query is, or will be. Raises WJoinError WJ720."""
        return home(self._spark, self._folder, self.begun, self._asked)

    @cached_property
    def begun(self) -> bool:
        """Whether a query has begun to run on the checkpoint; asked of Spark once."""
        return self._beside is not None and self._beside.begun()

    @cached_property
    def ending(self) -> int | None:
        """The micro-batch with which all streams end, where it is the next one; None where none is."""
        if self._folder is None or not hasattr(self._spark, "_jsparkSession") or not self.begun:
            return None
        return ending(Files.of(self._spark), self._folder)

    @cached_property
    def committed(self) -> bool:
        """Whether the query has committed a micro-batch."""
        return self._beside is not None and self._beside.committed()

    @cached_property
    def _identity(self) -> dict[str, Any] | None:
        """What the checkpoint belongs to, None where it is new, or that is not known."""
        if self._beside is None or not self.begun:
            return None
        try:
            _, value = self._beside.read(IDENTITY)
            return None if value is None else checked(value)
        except (*UNREACHABLE, ValueError) as error:
            message = f"the owner of the checkpoint {self._beside.folder} cannot be read: {cause(error)}"
            warn(KeptWarning(message))
            return None

    @property
    def begun_with(self) -> Begun | None:
        """The statements that the state began with, None where it is new, or they are not known."""
        return self._begun[1]

    @cached_property
    def _begun(self) -> tuple[int, Begun | None]:
        """The number of what is kept of its statements, and these."""
        if self._beside is None or not self.begun:
            return 0, None
        try:
            number, value = self._beside.read(BEGUN)
            return number, None if value is None else typed(Begun, value)
        except (*UNREACHABLE, ValueError) as error:
            warn(KeptWarning(f"the statements of {self._beside.folder} cannot be read: {cause(error)}"))
            return 0, None

    @property
    def joins(self) -> Sequence[Mapping[str, Any]]:
        """What the checkpoint says of its joins (``state.identity``); empty where it is not known."""
        return [] if self._identity is None else list(self._identity.get("joins", []))

    @property
    def meaning(self) -> Mapping[str, Any]:
        """What the parts mean of the statements that began the checkpoint; empty where it is not known."""
        return {} if self._identity is None else dict(self._identity.get("meaning", {}))

    @cached_property
    def _layouts(self) -> list[Layout]:
        return [] if self._beside is None else read_layouts(self._beside)

    @cached_property
    def _statistics(self) -> Recorded:
        return Recorded() if self._beside is None else read_measured(self._beside)
