"""The shell at a real terminal, as a user meets it."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.shell.screen import CTRL_C, CTRL_D, TAB, Screen

pytestmark = [pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(900)]

Open = Callable[..., Screen]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Open]:
    """Opens shells that keep their history here; none shows a traceback, and none is left."""
    opened: list[Screen] = []

    def start(*arguments: str, **environment: str) -> Screen:
        more = {"WJOIN_HISTORY": str(tmp_path / "history"), **environment}
        opened.append(Screen(*arguments, "--set", f"spark.sql.warehouse.dir={tmp_path}/warehouse", **more))
        return opened[-1]

    yield start
    for each in opened:
        each.kill()
        assert b"Traceback" not in each.raw
        assert b"Unhandled exception" not in each.raw


def java_of(screen: Screen) -> int:
    """Return the Java process below a shell."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True)
    processes = [line.split(None, 2) for line in listed.stdout.splitlines()]
    below = {screen.process.pid}
    for _ in processes:
        below |= {int(process) for process, parent, _ in processes if int(parent) in below}
    (java,) = [int(process) for process, _, name in processes if int(process) in below and name == "java"]
    return java


def menu(screen: Screen, name: str) -> bool:
    """Return whether a name stands in a menu below what is typed."""
    return re.search(rf"^ +{name}( +int)?$", screen.text, re.MULTILINE) is not None


@pytest.mark.long
def test_a_session_from_the_first_prompt_to_the_last_query(shell: Open, tmp_path: Path) -> None:
    screen = shell()
    screen.prompt()
    assert "Spark" not in screen.all or "Spark is starting" in screen.text, "Spark starts behind the prompt"

    # What is typed while Spark starts is run when it is there.
    screen.enter("SELECT 1 AS one,")
    screen.see("; ends the statement")
    screen.enter("NULL AS nothing, '日本' AS wide;")
    screen.see(" one │ nothing │ wide", "   1 │ NULL    │ 日本", "1 row, ")
    screen.prompt()

    # Errors have their place.
    screen.enter("SELECT '日本' FROM camera1 A, camera2 B WINDOW (A, B) = 5 WHERE A.x = B.x;")
    screen.see("error[WJ", "help: ")
    assert re.search(r"^  \|  +\^+$", screen.all, re.MULTILINE)
    screen.prompt()

    # An example, and what it has declared is completed.
    screen.enter(".example join")
    screen.see("      1 │ 2024-05-01 12:00:00 │ 2024-05-01 12:00:04 │ 2024-05-01 12:00:06")
    screen.prompt()
    screen.type("SELECT * FROM camera1 AS A WHERE A.ob")
    screen.wait(lambda: menu(screen, "obj_id"), "the column in a menu")
    screen.type(TAB)
    screen.wait(lambda: screen.line.endswith("WHERE A.obj_id"), "the column in the statement")
    screen.type(CTRL_C)
    screen.prompt()
    screen.type("SELECT * FROM camera1 A, camera2 B WINDOW (A, B) = 5 SEC")
    screen.wait(lambda: menu(screen, "SECONDS"), "the unit in a menu")
    screen.type(TAB)
    screen.wait(lambda: screen.line.endswith("= 5 SECONDS"), "the unit in the statement")
    screen.type(CTRL_C)
    screen.prompt()

    # A plan fits into the terminal, also after that has become narrower.
    screen.resize(60, 40)
    screen.enter(
        "EXPLAIN COST SELECT A.ts FROM camera1 A, camera2 B WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id;"
    )
    screen.see("looks up by key, then by time (exact hw): chosen")
    screen.prompt()
    screen.resize(100, 40)

    # A statement is cancelled, and the shell goes on.
    screen.enter("SELECT count(*) FROM range(100000000000) a, range(100000000) b;")
    screen.see("(Ctrl-C cancels)")
    screen.type(CTRL_C)
    screen.see("Cancelled")
    screen.prompt()

    # A stream is shown while it runs.
    screen.enter(".example stream")
    screen.see(" value │ asked", "INTERVAL '0", "found  (Ctrl-C stops it)")
    screen.type(CTRL_C)
    screen.see("results of the join, 0 late")
    screen.prompt()

    # Queries run on behind the prompt: one that is told of below it, one that fails, one that prints.
    screen.enter(".example query")
    screen.see("answered runs: ", " name             answered")
    screen.prompt()
    screen.wait(lambda: bool(re.search(r"answered \w+  \d+ rows/s  lag .* τ ", screen.text)), "τ")
    screen.enter("CREATE SINK bad USING noop; INSERT INTO bad SELECT raise_error('broken') FROM requests;")
    screen.see("error[WJ704]: the query into bad failed: [USER_RAISED_EXCEPTION] broken")
    screen.prompt()
    screen.enter("CREATE SINK shown USING console; INSERT INTO shown SELECT value FROM requests;")
    screen.type("SELECT 'typed meanwhile'")
    screen.see("Batch: 1", "Batch: 2")
    typed = "wjoin> SELECT 'typed meanwhile'"
    screen.wait(lambda: screen.line == typed, "what is typed below what is printed")
    screen.type(CTRL_C)
    screen.prompt()
    screen.enter("STOP QUERY shown;")
    screen.see("shown │ ")
    screen.prompt()

    # Ctrl-D asks before it stops what runs.
    screen.type(CTRL_D)
    screen.see("answered runs. Stop it and leave? [Y/n]")
    screen.enter("n")
    screen.prompt()
    screen.type(CTRL_D)
    screen.wait(lambda: screen.all.count("leave? [Y/n]") == 2, "the question")
    screen.enter("")
    screen.see("answered: ")
    assert screen.end() == 0
    kept = (tmp_path / "history").read_text()
    assert "+SELECT 1 AS one,\n+NULL AS nothing, '日本' AS wide;\n" in kept


def test_results_and_files(shell: Open, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    page.chmod(0o755)
    script = tmp_path / "first.sql"
    script.write_text(f"CREATE SINK kept USING parquet OPTIONS (path '{tmp_path}/kept');")
    screen = shell(str(script), "--checkpoint", str(tmp_path / "checkpoints"), PAGER=str(page), NO_COLOR="1")
    screen.see("done, ")
    screen.prompt()

    # Long results go to the pager, wide ones are turned.
    screen.enter(".rows 500")
    screen.prompt()
    screen.enter("SELECT id FROM range(1000);")
    screen.see("the first 500 rows (.rows 5000 fetches more)")
    screen.prompt()
    assert len((tmp_path / "paged").read_text().splitlines()) == 502
    screen.enter("SELECT 1 AS id, repeat('x', 90) AS text, repeat('y', 90) AS more;")
    screen.see("─ row 1 ─", " id    1", " more  y")
    screen.prompt()

    # A query is worked off at once where that is asked for.
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.json").write_text('{"k": 1, "ts": "2024-05-01T12:00:00Z"}\n')
    screen.enter(f"CREATE STREAM s (k INT, ts TIMESTAMP) USING json OPTIONS (path '{tmp_path}/data');")
    screen.see("s (k INT")
    screen.prompt()
    screen.enter(".once on")
    screen.prompt()
    screen.enter("INSERT INTO kept SELECT * FROM s;")
    screen.see("kept: 1 row in, 1 micro-batch")
    screen.prompt()
    screen.enter("SELECT * FROM s;")
    screen.see(" 1 │ 2024-05-01")
    screen.prompt()
    script.write_text(".nothing;\nSELECT nowhere\nFROM s;")
    screen.enter(f".read {script}")
    screen.see(f"--> {script}:1:1")
    screen.prompt()
    screen.enter(f".read {tmp_path}/none.sql")
    screen.see("error[WJ608]")
    screen.prompt()
    screen.enter(".hepl")
    screen.see("did you mean .help?")
    screen.prompt()

    # A running aggregate that never ends its groups is shown whole, and SIGTERM ends all of it.
    screen.enter(".once off")
    screen.prompt()
    screen.enter("SELECT k, count(*) AS n FROM s GROUP BY k;")
    screen.see(" k │ n", " 1 │ 1")
    screen.process.kill(signal.SIGTERM)
    assert screen.end() == 0
    assert re.search(rb"\x1b\[([\d;]*;)?(3[0-8]|9[0-7])[\d;]*m", screen.raw) is None, "no colours"


def test_a_terminal_that_cannot_draw(shell: Open) -> None:
    screen = shell(TERM="dumb")
    screen.enter("SELECT 1 AS a,")
    screen.enter("2 AS b;")
    screen.see("|1  |2  |")
    screen.enter(".quit")
    assert screen.end() == 0
    assert b"\x1b" not in screen.raw


@pytest.mark.parametrize(
    "leave",
    [
        lambda screen: screen.type(CTRL_D),
        lambda screen: screen.enter("quit;"),
        lambda screen: screen.process.kill(signal.SIGTERM),
        lambda screen: screen.process.kill(signal.SIGHUP),
    ],
    ids=["Ctrl-D", "quit", "SIGTERM", "SIGHUP"],
)
def test_one_leaves_while_spark_starts(shell: Open, leave: Callable[[Screen], None]) -> None:
    screen = shell()
    screen.prompt()
    leave(screen)
    assert screen.end() == 0


def test_a_history_that_cannot_be_read_or_written_is_told(shell: Open, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    screen = shell(WJOIN_HISTORY=str(tmp_path / "folder"))
    screen.see("the history cannot be saved in")
    screen.prompt()
    screen.enter("SELECT 'never finished")
    screen.enter("nor here;")
    screen.see("a string is not closed")
    screen.type(CTRL_C)
    screen.prompt()
    screen.enter(".help")
    screen.see("Commands", ".example join|stream|query", "Ctrl-R")
    screen.prompt()
    screen.type(CTRL_D)
    assert screen.end() == 0


def test_spark_that_cannot_be_started_is_told(shell: Open) -> None:
    screen = shell(JAVA_HOME="/nonexistent")
    screen.prompt()
    screen.see("Spark could not be started")
    screen.enter("SELECT 1;")
    screen.see("error: Java did not start")
    screen.prompt()
    screen.type(CTRL_D)
    assert screen.end() == 0


@pytest.mark.parametrize("during", [False, True], ids=["at the prompt", "in a statement"])
def test_a_java_that_is_killed_is_one_clear_line(shell: Open, during: bool) -> None:
    screen = shell()
    screen.prompt()
    # Makes Spark open all that it talks with Python by.
    screen.enter(".example query")
    screen.see("answered runs", "state ")
    screen.prompt()
    if during:
        screen.enter("SELECT count(*) FROM range(1000000000000) WHERE hash(id) = 1;")
        screen.see("Ctrl-C cancels")
    os.kill(java_of(screen), signal.SIGKILL)
    ended = "error: Spark's Java process has ended by SIGKILL, and all queries with it"
    screen.see(ended)
    screen.see("Spark has ended")
    screen.prompt()
    told = screen.all.count(ended)
    screen.enter("SELECT 1;")
    screen.wait(lambda: screen.all.count(ended) == told + 1, "the same once more")
    screen.prompt()
    assert "Errno" not in screen.all
    screen.enter(".log")
    screen.see(".log)")
    screen.prompt()
    screen.type(CTRL_D)
    assert screen.end() == 0
