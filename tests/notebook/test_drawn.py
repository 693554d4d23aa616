"""The picture of a running query: without Spark."""

from datetime import UTC, datetime

from wjoin.measured.points import Point
from wjoin.notebook.drawn import Picture
from wjoin.notebook.html_tables import Table

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POINTS = [
    Point(
        begins=AT.timestamp() - 10 + n,
        ends=AT.timestamp() - 9 + n,
        rows_in={"A": n},
        matches=n,
        state_rows={"A": 7},
        seen={"A": round((AT.timestamp() - 11.5 + n) * 1e6)},
    )
    for n in range(10)
]


def picture(**more: object) -> Picture:
    given = {
        "name": "a<b",
        "state": "running",
        "at": AT,
        "living": True,
        "done": "10 rows in",
        "points": POINTS,
    }
    return Picture(**{**given, **more})


def test_lines_end_with_their_newest_value() -> None:
    html = picture().html()
    assert html.count("<svg") == 4
    for name, value in (
        ("rows a second", "9"),
        ("results a second", "9"),
        ("rows of state", "7"),
        ("lag", "2.5 s"),
    ):
        assert f"<span>{name}</span><b>{value}</b>" in html
    assert "a&lt;b" in html
    assert "Lines: the last 10 s." in html


def test_a_line_of_an_hour_has_few_points() -> None:
    begin = AT.timestamp() - 3600
    hour = [Point(begins=begin + 4 * n, ends=begin + 4 * n + 4, rows_in={"A": 8}) for n in range(900)]
    html = picture(points=hour).html()
    assert len(html) < 15_000
    assert "<span>rows a second</span><b>2</b>" in html
    assert "Lines: the last hour." in html


def test_only_a_living_one_can_turn_gray() -> None:
    """Where the style is taken away what remains is not wrong either."""
    living, ended = picture().html(), picture(living=False, state="stopped").html()
    told = "No update since 2026-01-02 03:04:05: the kernel has ended, or the page was reloaded."
    assert told in living
    assert told not in ended
    assert 'class="wjoin-live living"' in living
    assert 'class="wjoin-live"' in ended


def test_as_text() -> None:
    rows = Table(("k", "word"), (True, False), [("1", "a\nb"), (None, "c")], "2 rows")
    shown = picture(notes=["a note"], error="error[WJ704]: no", rows=rows).text()
    assert shown.splitlines() == [
        "a<b: running at 03:04:05; 10 rows in",
        "a note",
        "error[WJ704]: no",
        "    k │ word",
        "──────┼──────",
        "    1 │ a",
        "      │ b",
        " NULL │ c",
        "2 rows",
    ]
