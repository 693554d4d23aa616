"""What Spark raises, as errors with a code, a place, and Spark's own words in one line."""

import contextlib
import re
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
)

from wjoin.executor.spark.beginning import TRIES, late
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import redacted, shown
from wjoin.grammar.spans import Span
from wjoin.spark.damage import damage_remedy
from wjoin.spark.refused_place import is_of_literal, refused_place

RAISED_BY_SPARK = (PySparkException, Py4JError)
"""What Spark raises: its own errors, and those that reach Python as Py4J's."""

UNREAD = (AnalysisException, ParseException, ArithmeticException, IllegalArgumentException)
"""What Spark raises of a text that it cannot read; the last two of a literal that no type holds."""
_POSITION = re.compile(r"[;,]? *\(?line \d+,? pos \d+\)?;?$")
_INNER_NAME = r"`?(?:__wjoin_(?!match_)\w+|_pyspark_[0-9a-f]+)`?"
_SUGGESTED = re.compile(rf"{_INNER_NAME}(?:\.`?\w+`?)?(?:, *)?")
_MATCH_NAME = re.compile(r"`?__wjoin_match_(\w+?)`?(?=\W|$)")
_QUERY = re.compile(r"^(?:\[STREAM_FAILED\] )?Query .*?terminated with exception: ")
_JOB = re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\) \(.*?\): ")
_SPARK_CLASS = re.compile(r"^org\.apache\.spark\.(?:\w+\.)*\w+(?:Exception|Error): ")
_PYTHON = re.compile(r"^(?!(?:java|org|scala)\.)[\w.]+(?:Error|Exception|Interrupt): ")
_ALIKE = 60
_IN_OTHER_WORDS = {
    "Option 'basePath' not found": "the folder of a source is missing",
    "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.": (
        "Java did not start: Spark needs Java 17 or newer; set JAVA_HOME, or put java on PATH"
    ),
}
"""What Spark says of some failures does not tell what happened."""
_OTHER_COLUMNS = (
    "a stream has the columns that its table had when it was declared: CREATE OR REPLACE STREAM, "
    "then start the query again"
)
_MENDED = "fix the cause and start the query again: it resumes from its checkpoint, {checkpoint}"
_REMEDIES = (
    (
        "Some data may have been lost because they are not available in Kafka any more",
        f"{_MENDED}; with the stream's option failOnDataLoss 'false' it continues without the records",
    ),
    (
        "[DELTA_SOURCE_TABLE_IGNORE_CHANGES]",
        "with the stream's option skipChangeCommits 'true' the query resumes from its checkpoint, "
        "{checkpoint}, but skips all rows of that commit, and of later ones that change rows",
    ),
    (
        "[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE]",
        "the table was replaced by another one: restore the old one, or start with a new checkpoint and "
        "sink; {checkpoint} belongs to the old table",
    ),
    (
        "[DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE]",
        "the table's log no longer reaches back to where the query stopped: start with a new checkpoint "
        "and sink, because {checkpoint} cannot resume. The table's property delta.logRetentionDuration sets "
        "how long the log is kept",
    ),
    ("[DELTA_SCHEMA_CHANGED", _OTHER_COLUMNS),
    (
        "[CONCURRENT_STREAM_LOG_UPDATE]",
        "another query uses the same checkpoint, {checkpoint}: give each query its own. If none does, an "
        "offsets file is missing: restore it from a copy, or start with a new checkpoint folder and a new "
        "results folder",
    ),
    (
        "No space left on device",
        "free disk space and start the query again: it resumes from its checkpoint, {checkpoint}, "
        "and no row is lost",
    ),
    (
        # Spark does not say why.
        "[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT]",
        "make sure that the disk has room and that you may write to the checkpoint, then start the query "
        "again: it resumes from its checkpoint, {checkpoint}, and no row is lost",
    ),
    ("assertion failed: Invalid batch: ", _OTHER_COLUMNS),
    (
        "Wrong basePath ",
        "the checkpoint, {checkpoint}, has files of another folder: give the stream its path of before, "
        "or start with a new checkpoint and sink",
    ),
)
"""What a failed query's error has in it, and the remedy for that."""
_OWN = re.compile(r"error\[(WJ\d+)\]: ([^\n]*)(?:\n(?:[^\n]*\n)*?help: ([^\n]*))?")


_ENDLESS = re.compile(
    r"Queries with streaming sources must be executed with writeStream\.start\(\)"
    r"|\[INVALID_SUBQUERY_EXPRESSION\.STREAMING_QUERY\]"
)


def is_endless(error: BaseException) -> bool:
    """Return whether Spark refuses a statement because it needs all rows of a stream."""
    return isinstance(error, AnalysisException) and _ENDLESS.search(str(error)) is not None


def never_ends(subject: str, span: Span | None, text: str | None) -> WJoinError:
    """Return the error for what needs all rows of a stream."""
    return WJoinError(
        "WJ621", f"{subject} needs all rows of a stream, which never ends", span=span, text=text
    )


def first_line(error: BaseException) -> str:
    """Return what Spark says of a statement that it refuses: in one line, without plan and inner names."""
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        # Py4J's own first line says nothing.
        lines = [lines[1].removeprefix(": ")]
    if not lines:
        return type(error).__name__
    return _plain(_SPARK_CLASS.sub("", lines[0]))


def cause(error: BaseException) -> str:
    """Return in one line why something failed while it ran; Python's own error where a worker raised one."""
    text = str(error).strip()
    if text.startswith("An error occurred while calling"):
        text = text.partition("\n")[2].removeprefix(": ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    head = lines[0]
    for wrapping in (_SPARK_CLASS, _QUERY, _JOB, _SPARK_CLASS):
        head = wrapping.sub("", head)
    python = [line for line in lines[1:] if _PYTHON.match(line)]
    caused = [line.removeprefix("Caused by: ") for line in lines[1:] if line.startswith("Caused by: ")]
    if python:
        return _plain(python[-1])
    root = _SPARK_CLASS.sub("", caused[-1]) if caused else ""
    if root and root[:_ALIKE] not in head and head[:_ALIKE] not in root:
        head = f"{head} ({root})"
    line = _plain(head)
    return _IN_OTHER_WORDS.get(line, line)


def failure(
    error: BaseException,
    span: Span,
    text: str,
    *,
    subject: str = "the statement",
    sink: str | None = None,
    checkpoint: str | None = None,
) -> WJoinError:
    """Return what happened to a statement, at its place: refused (WJ607) or failed (WJ704).

    One that is refused has the place that Spark names.
    An error of wjoin's own inside of Spark's keeps its code. ``sink`` and ``checkpoint`` are those of
    the query that failed.
    """
    if sink is not None:
        subject = f"the query into {sink}"
    own = _OWN.search(str(error))
    if own is not None:
        code, message, remedy = own.groups()
        where = "" if sink is None else f" (the query into {sink}, checkpoint {checkpoint})"
        return WJoinError(code, f"{message}{where}", span=span, text=text, help=remedy)
    if is_endless(error):
        return never_ends(subject, span, text)
    if isinstance(error, PySparkException) and _is_refusal(error):
        span, remedy = refused_place(error, span, text)
        message = f"Spark refused {subject}: {first_line(error)}"
        return WJoinError("WJ607", message, span=span, text=text, help=remedy)
    if late(error):
        message = f"{subject} did not start: no Python worker started within ten seconds, {TRIES} times"
        remedy = "start it again when the machine is less busy"
        if checkpoint is not None:
            remedy = f"{remedy}: it resumes from its checkpoint, {checkpoint}"
        return WJoinError("WJ717", message, span=span, text=text, help=remedy)
    remedy = None if checkpoint is None else _remedy(str(error), checkpoint)
    return WJoinError("WJ704", f"{subject} failed: {cause(error)}", span=span, text=text, help=remedy)


def _is_refusal(error: PySparkException) -> bool:
    return isinstance(error, AnalysisException | ParseException) or is_of_literal(error)


def _remedy(said: str, checkpoint: str) -> str:
    """Return what to do about a failed query, by what Spark says of it."""
    known = next((remedy for words, remedy in _REMEDIES if words in said), None)
    damage = damage_remedy(said, checkpoint) if known is None else None
    return damage or (known or _MENDED).format(checkpoint=checkpoint)


@contextlib.contextmanager
def placed(text: str, span: Span | None = None, subject: str = "the statement") -> Iterator[None]:
    """Raise errors of wjoin's that have a place with its text, and what Spark raises as one at ``span``.

    Without ``span``, errors of Spark's stay as they are.
    """
    try:
        yield
    except WJoinError as error:
        if error.span is None or error.text is not None:
            raise
        raise error.within(text) from error.__cause__
    except RAISED_BY_SPARK as error:
        if span is None:
            raise
        raise failure(error, span, text, subject=subject) from error


@contextlib.contextmanager
def located(span: Span) -> Iterator[None]:
    """Give errors of wjoin's that are raised inside a place; ``placed`` around it gives them its text."""
    try:
        yield
    except WJoinError as error:
        raise error.at(span) from error.__cause__


def _plain(line: str) -> str:
    """Return a line without positions in a text that the user has not written, inner names, and secrets."""
    line = _POSITION.sub("", line.strip().removesuffix(" SQLSTATE: XXKST")).rstrip(";")
    if "__wjoin" in line or "_pyspark_" in line:
        line = _MATCH_NAME.sub(lambda found: f"MATCH_{found[1].upper()}()", line)
        line = _SUGGESTED.sub("", line)
        line = re.sub(r", *\]", "]", line).replace(" Did you mean one of the following? [].", "")
    return shown(redacted(line))
