"""A process that works off a streaming join over files; the fault tests kill it."""

import faulthandler
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import wjoin
from wjoin.measured.kept import Kept
from wjoin.planner.choose.layouts import Layout, LayoutRule

SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}

STREAM = """
CREATE STREAM {name} {columns} USING {source}
WATERMARK ts DELAY OF INTERVAL {delay} SECONDS {late} {home};
"""

FILES = "{format} OPTIONS (path '{place}{name}', '{one_file}' '1')"

TOPIC = (
    "kafka OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{prefix}{name}', "
    "kafka.default.api.timeout.ms '600000', maxOffsetsPerTrigger '300') FORMAT JSON"
)

SCRIPT = """
{streams}
CREATE SINK tracked USING {format} OPTIONS (path '{place}tracked') {clauses};
{sinks}{begin}
INSERT INTO tracked
SELECT {hint} A.row_id AS a, B.row_id AS b, C.row_id AS c
FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 10 SECONDS{counted}
WHERE {condition};
{more}
"""

CHAINED = """
INSERT INTO tracked
SELECT X.a, X.b, C.row_id AS c
FROM (SELECT A.row_id AS a, B.row_id AS b, A.obj_id, B.ts FROM camera1 A, camera2 B
  WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id) WATERMARK ts DELAY OF INTERVAL 1 HOUR AS X, camera3 C
WINDOW (X, C) = 10 SECONDS WHERE X.obj_id = C.obj_id;
"""
"""The same results by a join over a join."""

MORE = {
    "near": """SELECT B.row_id AS b, A.row_id AS a, Z.row_id AS c FROM camera2 B, camera3 Z, camera1 A
        WINDOW (A, B) = 1 SECOND AND WINDOW (Z, B) = 2 SECONDS
        WHERE A.obj_id = B.obj_id AND Z.obj_id = B.obj_id AND A.row_id % 2 = 0""",
    "pairs": """SELECT A.row_id AS a, B.row_id AS b FROM camera1 A, camera2 B WINDOW (A, B) = 1 SECOND
        WHERE A.obj_id = B.obj_id""",
    "alone": """SELECT A.row_id AS a, B.row_id AS b FROM camera1 A FULL JOIN camera2 B
        ON A.obj_id = B.obj_id AND B.row_id % 3 = 0 WINDOW (A, B) = 1 SECOND""",
    "between": """SELECT A.row_id AS a, B.row_id AS b FROM camera1 A
        LEFT JOIN camera2 B ON A.obj_id = B.obj_id
        LEFT ANTI JOIN camera3 C ON A.obj_id = C.obj_id AND C.row_id % 2 = 0
        WINDOW (A, B) BETWEEN 0 SECONDS AND 1 SECOND
        AND WINDOW (A, C) BETWEEN 0 SECONDS AND 500 MILLISECONDS""",
    "nearest": """SELECT A.row_id AS a, B.row_id AS b FROM camera1 A LEFT ASOF JOIN camera2 B
        MATCH_CONDITION (NEAREST) ON A.obj_id = B.obj_id WINDOW (A, B) = 1 SECOND""",
}
"""The other statements of a set: one that shares the join, one that does not, and those that cannot."""

CAMERAS = ("camera1", "camera2", "camera3")

TABLES = "lake.db."
"""Where tables of Iceberg are, which have names and no folders."""

KEYED = "A.obj_id = B.obj_id AND B.obj_id = C.obj_id"
_APART = ("A.obj_id - B.obj_id", "B.obj_id - C.obj_id", "A.obj_id - C.obj_id")
KEYLESS = " AND ".join(f"abs({each}) < 1" for each in _APART)
"""The same condition, which no hash can tell a worker from."""

COLUMNS = "(obj_id BIGINT, ts TIMESTAMP, row_id BIGINT)"

FORMAT = "format"
"""The setting of a child that names the format of its streams and its sink: parquet, delta, or iceberg."""

PLAN = "plan"
"""The setting of a child that asks for a hint PLAN, for a join without a key."""


STATE = "state"
"""The setting of a child that says where its state is, as wjoin.state has it."""

SET = "set"
"""The setting of a child that runs its statement in a set with some of ``MORE``, by names with + between."""

CLAUSES = "clauses"
"""The setting of a child that says what more its sinks are declared with."""

ADDED = "added"
"""The setting of a child that adds one of ``MORE`` to its running set, with history."""

DELAY = "delay"
"""The setting of a child that says for how many seconds its streams wait for late rows."""

LATE = "late"
"""The setting of a child whose streams have a sink of this name for their late rows."""

CHAIN = "chain"
"""The setting of a child that has the same results by a join over a join."""

VISITS = "visits"
"""The setting of a child that asks for an approximate join with so many messages, over homes by row."""

HOME = "home"
"""The setting of a child that says by which column rows of an approximate join live; else by their file."""

COUNTED = "counted"
"""The setting of a child whose streams have windows of so many rows, and one that begins at landmarks."""

TOPICS = "topics"
"""The setting of a child whose streams are topics: the address of a broker, a slash, and with what the names
of the topics begin."""

FORM = "form"
"""The setting of a child that names with what the layout begins that a new checkpoint takes."""


def take(form: str) -> None:
    """Have a new checkpoint take a layout that begins so, whatever it costs."""
    known = LayoutRule.refusals

    def refusals(rule: LayoutRule, layouts: Sequence[Layout]) -> list[str]:
        if not rule.free:
            return known(rule, layouts)
        return ["" if each.stages.startswith(form) else "another one is asked for" for each in layouts]

    LayoutRule.refusals = refusals


def script(
    root: Path,
    plan: str | None,
    format: str,
    together: Sequence[str] = (),
    clauses: str = "",
    delay: str = "2",
    late: str = "",
    visits: str = "",
    home: str = "row_id",
    topics: str = "",
    counted: str = "",
) -> str:
    """Return the statements of a child; a table of Delta Lake or Iceberg knows its columns."""
    place = TABLES if format == "iceberg" else f"{root}/"
    one_file = "streaming-max-files-per-micro-batch" if format == "iceberg" else "maxFilesPerTrigger"
    columns = COLUMNS if format == "parquet" else ""
    servers, _, prefix = topics.partition("/")
    told = {"format": format, "place": place, "one_file": one_file, "servers": servers, "prefix": prefix}
    sources = {name: (TOPIC if topics else FILES).format(name=name, **told) for name in CAMERAS}
    given = {"columns": columns, "delay": delay}
    into = f"LATE ROWS INTO {late}" if late else ""
    home = f"HOME BY {home}" if visits and home else ""
    streams = [
        STREAM.format(name=name, source=sources[name], late=into, home=home, **given) for name in CAMERAS
    ]
    if late:
        streams.append(f"CREATE SINK {late} USING {format} OPTIONS (path '{place}{late}');")
    hint, condition = ("", KEYED) if plan is None else (f"/*+ PLAN({plan}) */", KEYLESS)
    if visits:
        hint = f"/*+ APPROXIMATE(messages = {visits}), PLAN(DIGEST, 4) */"
    sinks = begin = more = ""
    if together:
        declared = f"CREATE SINK {{name}} USING {format} OPTIONS (path '{place}{{name}}') {clauses};"
        sinks = "".join(declared.format(name=name) for name in MORE)
        begin = "EXECUTE STATEMENT SET tracked BEGIN"
        more = "".join(f"INSERT INTO {name} {MORE[name]};" for name in together) + "END"
    rows = f"WINDOW A = {counted} ROWS AND WINDOW B = 2 ROWS PER KEY AND WINDOW C SINCE (C.row_id % 97 = 0)"
    return SCRIPT.format(
        streams="".join(streams),
        counted=f" AND {rows}" if counted else "",
        clauses=clauses,
        sinks=sinks,
        begin=begin,
        more=more,
        hint=hint,
        condition=condition,
        format=format,
        place=place,
    )


def run(root: Path, conf: dict[str, str]) -> None:
    """Work off everything below ``root`` into ``root/tracked``."""
    together = conf.pop(SET, "")
    added = conf.pop(ADDED, "")
    chain = conf.pop(CHAIN, "")
    statements = script(
        root,
        conf.pop(PLAN, None),
        conf.pop(FORMAT, "parquet"),
        together.split("+") if together else (),
        conf.pop(CLAUSES, ""),
        conf.pop(DELAY, "2"),
        conf.pop(LATE, ""),
        conf.pop(VISITS, ""),
        conf.pop(HOME, "row_id"),
        conf.pop(TOPICS, ""),
        conf.pop(COUNTED, ""),
    )
    if chain:
        statements = statements[: statements.index("INSERT INTO tracked")] + CHAINED
    # The tests read in the log that a worker has died.
    settings = {**SETTINGS, "wjoin.log": "stderr"}
    if FORM in conf:
        take(conf.pop(FORM))
    state = conf.pop(STATE, "auto")
    session = wjoin.connect(**{**settings, **conf})
    session.sql(f"SET wjoin.state = {state}")
    if added:
        run_and_add(session, statements, added, root / "checkpoints")
    else:
        session.run_script(statements, once=True, checkpoint=str(root / "checkpoints"))
    session.spark.stop()


def run_and_add(session: wjoin.Session, statements: str, added: str, checkpoints: Path) -> None:
    """Start a set, add a statement to it with history once a micro-batch is committed, and work off the rest.

    A set that has it already ends with it.
    """
    folder = checkpoints / "tracked"
    begun = Kept(session.spark, str(folder)).begun_with
    if begun is not None and begun.sink(added) is not None:
        more = statements.replace("END", f"INSERT INTO {added} {MORE[added]}; END")
        session.run_script(more, once=True, checkpoint=str(checkpoints))
        return
    session.run_script(statements, once=False, checkpoint=str(checkpoints))
    while not [*folder.glob("commits/[0-9]*")]:
        time.sleep(0.05)
    session.sql(f"ALTER STATEMENT SET tracked ADD INSERT INTO {added} {MORE[added]} WITH HISTORY")
    session.running[-1].query.processAllAvailable()


if __name__ == "__main__":
    # A test that waits for too long asks where all threads are, as one asks a Java process.
    faulthandler.register(signal.SIGQUIT)
    run(Path(sys.argv[1]), dict(pair.split("=", 1) for pair in sys.argv[2:]))
