"""Tells of approximate joins: what their rows cost, and how many of the results are lost by that."""

from collections.abc import Iterator

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.points import Point
from wjoin.measured.progress import Done
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.shed_rows import lost_words
from wjoin.spark.notices import tell

_CODE = "WJ825"

_KNOWN = 5
"""Micro-batches after which the first is told."""

_MORE = 1.5
"""How many times what was told before is worth telling again."""

_WORTH = 0.02


def visits_of_a_row(done: Done) -> float:
    """Return how many nodes other than its own a row has visited, on average, without partial results."""
    return (done.visits - done.partial_visits) / max(1, sum(done.rows_in.values()))


def visits_words(done: Done) -> str:
    """Return how many visits rows have made, or how many have come from sites, and what is lost.

    >>> visits_words(Done(rows_in={"A": 5, "B": 5}, visits=15, summary_bytes=80, matches=60,
    ...     results_expected=100, results_least=80, results_most=120))
    '1.5 visits a row, 8 bytes of summaries a row, about 40.0 % of the results lost, 25.0 to 50.0 %'
    """
    if done.choices:
        return _brought_words(done)
    told = done.summary_bytes / max(1, sum(done.rows_in.values()))
    visits = f"{visits_of_a_row(done):.2g} visits a row{_spread(done)}{_partial_words(done)}"
    return f"{visits}, {told:.2g} bytes of summaries a row, {lost_words(done)}"


def _partial_words(done: Done) -> str:
    """Return how many visits partial results have made, of which there may be many for each row.

    >>> _partial_words(Done(rows_in={"A": 5, "B": 5}, visits=65, partial_visits=55, partial_results=50))
    ' and 1.1 a partial result (5 of these a row)'
    """
    if not done.partial_results:
        return ""
    many = done.partial_results / max(1, sum(done.rows_in.values()))
    return (
        f" and {done.partial_visits / done.partial_results:.2g} a partial result ({many:.2g} of these a row)"
    )


NODE_HEAD = ("node", "rows that live there", "visits for each", "bytes of summaries for each")


def node_rows(done: Done) -> Iterator[tuple[str, ...]]:
    """Yield what is told of each node, as ``NODE_HEAD`` says.

    >>> list(node_rows(Done(rows_by_node={"1": 40}, visits_by_node={"1": 50})))
    [('1', '40', '1.2', '0')]
    """
    for node, rows in sorted(done.rows_by_node.items(), key=lambda each: int(each[0])):
        of = (done.visits_by_node.get(node, 0), done.summary_bytes_by_node.get(node, 0))
        yield (node, f"{rows:,}", *(f"{each / max(1, rows):.2g}" for each in of))


def _spread(done: Done) -> str:
    """Return how the visits differ from node to node."""
    visits = [done.visits_by_node.get(node, 0) / max(1, rows) for node, rows in done.rows_by_node.items()]
    least, most = (f"{each:.2g}" for each in (min(visits, default=0), max(visits, default=0)))
    return "" if least == most else f" ({least} to {most} by node)"


def brought_share(done: Done) -> float:
    """Return the share of the rows at sites that have come."""
    return sum(done.rows_in.values()) / max(1, sum(each["rows"] for each in done.sites.values()))


def _brought_words(done: Done) -> str:
    """Return the same of streams at sites.

    >>> told = {"found": 90.0, "missing": 10.0, "least": 5.0, "most": 20.0, "late": 1.0}
    >>> site = {"rows": 40, "messages": 4, "summary_bytes": 80}
    >>> words = _brought_words(Done(rows_in={"A": 5, "B": 5}, choices=told, sites={"grpc://a:1": site}))
    >>> words.partition(", about ")[0]
    '25.0 % of the rows fetched, 2 bytes of summaries a row, 4 requests'
    >>> words.partition(", about ")[2]
    '10.0 % of the results lost, 5.3 to 18.2 %, 1 late row dropped'
    """
    rows, messages, size = (
        sum(each[name] for each in done.sites.values()) for name in ("rows", "messages", "summary_bytes")
    )
    came = f"{100 * brought_share(done):.1f} % of the rows fetched"
    told = f"{size / max(1, rows):.2g} bytes of summaries a row, {counted(messages, 'request')}"
    words = f"{came}, {told}, {lost_words(done)}"
    late = round(done.choices.get("late", 0.0))
    return f"{words}, {counted(late, 'late row')} dropped" if late else words


class Visits:
    """What is lost in the approximate joins of one run of a query; ``subject`` is the query in words."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._done: Point | None = None
        self._told = 0.0, 0.0, 0.0

    def take(self, report: MicroBatchReport) -> None:
        """Add up what is lost."""
        progress = report.progress
        if not progress.idle and progress.approximate:
            done = Point(begins=0.0, ends=0.0, batches=1, **progress.some(_ADDED))
            self._done = done if self._done is None else self._done.joined(done)

    def tend(self) -> None:
        """Tell once something is known, and again when it has become far more."""
        if self._done is None or self._done.batches < _KNOWN:
            return
        if self._done.results_lost[0] > _WORTH + _MORE * self._told[0]:
            self._tell(self._done)

    def end(self) -> None:
        """Tell of what has not been told, and again where the loss is not within what was."""
        self.tend()
        _, least, most = self._told
        if self._done is not None and not least <= self._done.results_lost[0] <= most:
            self._tell(self._done)

    def _tell(self, done: Done) -> None:
        self._told = done.results_lost
        words = visits_words(done)
        tell(WJoinWarning(_CODE, f"{self._subject} is approximate, as requested: {words}"))


_ADDED = (
    *("rows_in", "visits", "partial_visits", "partial_results", "trials", "summary_bytes"),
    *("choices", "sites"),
    *("rows_by_node", "visits_by_node", "summary_bytes_by_node"),
    *("matches", "results_expected", "results_least", "results_most", "results_unknown"),
)
