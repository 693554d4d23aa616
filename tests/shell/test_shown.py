"""What is shown: tables, plans in narrow terminals, the line below the prompt, long results."""

import os
import re
import stat
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.cells import cell_len

from tests.explain.drawn import ALL, named, read
from tests.tiers import tiers
from wjoin.grammar.spans import Span
from wjoin.measured.followed import Followed
from wjoin.measured.progress import Progress
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.text import explain_text
from wjoin.queries.running import Running
from wjoin.shell.explained import explained
from wjoin.shell.pager import show_lines
from wjoin.shell.paint import Paint
from wjoin.shell.status_line import complete_text, status_line, status_text
from wjoin.shell.tables import TextRows, records, table, table_width
from wjoin.statements.explanation import Explanation

PLAIN = Paint(False)
NOW = datetime(2026, 5, 1, 12, 0, 10, tzinfo=UTC)


def test_a_table():
    rows = TextRows(("id", "名前"), (True, False), (("1", "日本語"), ("22", None), ("3", "a\nb")))
    assert table(rows, PLAIN) == [
        " id │ 名前",
        "────┼────────",
        "  1 │ 日本語",
        " 22 │ NULL",
        "  3 │ a",
        "    │ b",
    ]
    assert table_width(rows) == 13


def test_values_cannot_move_the_cursor():
    rows = TextRows(("v",), (False,), (("\x1b[2J\r\x07\u202ex",),))
    assert table(rows, PLAIN)[-1] == r" \x1b[2J\r\x07\u202ex"


@pytest.mark.parametrize("width", [20, 40, 79])
def test_a_table_that_is_cut_fits(width):
    rows = TextRows(tuple("abc"), (False, True, False), (("x" * 50, "1" * 30, "日本" * 20), ("y", "2", "z")))
    assert all(cell_len(line) <= width for line in table(rows, PLAIN, width))


def test_records_of_rows_that_are_too_wide():
    rows = TextRows(("id", "text"), (True, False), (("1", "a\nb"), ("2", None)))
    assert records(rows, PLAIN) == [
        "─ row 1 ────", " id    1", " text  a", "       b", "─ row 2 ────", " id    2", " text  NULL",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "width"),
    tiers(
        product(
            [name for name in ALL if name not in ("hostile", "eight streams, wide labels")], [60, 100, 200]
        ),
        long=[("hops", 100)],
        thorough=[("hops", 60), ("hops", 200)],
    ),
)
def test_a_plan_fits_into_any_terminal(name, width):
    document = read(named(name))
    text = f"{explain_text(document)}\n\n{cost_text(document)}"
    lines = explained(Explanation(text, [document]), width, PLAIN)
    assert max(map(cell_len, lines)) <= width
    # Nothing is lost on the way.
    assert _words(explain_text(document)) <= _words("\n".join(lines))
    assert all(_words(each.words) <= _words("\n".join(lines)) for each in document.ranked)


def _words(text: str) -> set[str]:
    return {word.strip(":;,") for word in text.split()}


def test_what_spark_explains_stays_as_it_is():
    plan = "== Physical Plan ==\n" + "x" * 300
    assert explained(Explanation(plan), 60, PLAIN) == plan.splitlines()


def progress(batch: int, second: int, rows: int, **more: object) -> Progress:
    started = (NOW - timedelta(seconds=second)).isoformat()
    counts = {"rows_in": {"A": rows}, "late": {}, "null_times": {}, "state_rows": {}, "watermarks": {}}
    values = {"matches": 0, "comparisons": 0, "state_bytes": 0, "started": started, **counts, **more}
    return Progress(query="q", batch=batch, seconds=2.0, **values)


def test_the_time_by_which_results_are_complete_is_the_least_watermark():
    noon = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1e6)
    both = progress(0, 0, 5, watermarks={"A": noon, "B": noon - 5_000_000})
    assert complete_text(both, NOW) == "11:59:55 UTC"
    assert complete_text(both, NOW + timedelta(days=1)) == "2026-05-01 11:59:55 UTC"
    silent = progress(0, 0, 5, rows_in={"A": 5, "B": 0}, watermarks={"A": noon})
    assert complete_text(silent, NOW) == "", "a stream that has sent nothing may still send anything"
    assert complete_text(progress(0, 0, 5, watermarks={"A": 17}), NOW) == "17"


def running(state: str, *reports: Progress) -> Running:
    """Return a query into pairs, as its follower knows it."""
    followed = Followed(SimpleNamespace(id="id", runId="run", name="pairs"))
    followed.works = state == "running"
    for each in reports:
        followed.totals.add(each)
    return Running(followed, "", Span(0, 0), Span(0, 0), "pairs")


def test_the_line_below_the_prompt_says_what_queries_do_and_fits():
    noon = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1e6)
    times = {"watermarks": {"A": noon}, "seen": {"A": noon + 3_000_000}}
    one = status_text(running("running", progress(0, 70, 2469, **times)))
    assert re.fullmatch(r"pairs running  1,2\d\d rows/s  lag -1 min  τ 2026-05-01 12:00:00 UTC", one)
    assert status_text(running("starting")) == "pairs starting"
    idle = running("idle", progress(0, 70, 5, seen={"A": noon}))
    assert re.match(r"pairs idle  0 rows/s  lag", status_text(idle))
    assert status_line([one, "q starting"], 100) == f"{one}  │  q starting"
    assert status_line([one] * 9, 80) == f"{one}  │  8 more"
    assert status_line([], 80) == ""


@pytest.mark.parametrize(("count", "paged"), [(5, False), (50, True)])
def test_long_results_go_to_the_pager(tmp_path, monkeypatch, count, paged):
    script = tmp_path / "page"
    script.write_text(f"#!/bin/sh\ncat > {tmp_path}/seen\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PAGER", str(script))
    lines = [str(number) for number in range(count)]
    with (tmp_path / "out").open("w") as out:
        show_lines(lines, out, os.terminal_size((80, 24)), True)
    seen = tmp_path / "seen" if paged else tmp_path / "out"
    assert seen.read_text().splitlines() == lines
    assert (tmp_path / "seen").exists() == paged


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager", "'", "false", "true"])
def test_a_pager_that_is_none_breaks_nothing(tmp_path, monkeypatch, pager):
    monkeypatch.setenv("PAGER", pager)
    with (tmp_path / "out").open("w") as out:
        show_lines(["x" * 100] * 10_000, out, os.terminal_size((80, 24)), True)
    if pager not in ("false", "true"):
        assert len((tmp_path / "out").read_text().splitlines()) == 10_000


def test_without_a_pager_all_is_printed(tmp_path: Path):
    with (tmp_path / "out").open("w") as out:
        show_lines(["x"] * 100, out, os.terminal_size((80, 24)), False)
    assert len((tmp_path / "out").read_text().splitlines()) == 100
