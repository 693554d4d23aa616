"""Who waits for whom where a stream sends nothing: told once, in words, and not where nobody waits."""

import warnings
from typing import Any, cast

import pytest

from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.progress import read
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.silent_streams import Silence


def report(second: int, *stages: dict[str, int | None]) -> MicroBatchReport:
    """Return a report of a micro-batch by its clock, with the counts of the stages of a join."""
    body = {
        "id": "q",
        "batchId": second,
        "durationMs": {"addBatch": 1},
        "timestamp": f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000Z",
        "observedMetrics": {f"wjoin:0:{number}": counts for number, counts in enumerate(stages)},
    }
    return MicroBatchReport(cast(Any, body), read(body))


def counts(
    a: int, b: int, *, seen: tuple[int, int], kept: tuple[int, int], **more: int
) -> dict[str, int | None]:
    """Return what is counted of the rows of two streams, whose delays are 0 and 5."""
    told = {"comparisons": 0, "matches": 0, "rows:A": a, "rows:B": b, "delay:A": 0, "delay:B": 5}
    return {**told, "seen:A": seen[0], "seen:B": seen[1], "kept:A": kept[0], "kept:B": kept[1], **more}


def test_rows_that_wait_are_told_of_once_with_the_time_of_the_last_row() -> None:
    found = Silence("the query out")
    found.take(report(0, counts(1, 1, seen=(10, 10), kept=(1, 1))))
    found.take(report(5, counts(1, 1, seen=(20, 20), kept=(1, 1))))
    found.take(report(64, counts(1, 0, seen=(30, 20), kept=(2, 1))))
    assert found.words == ""
    found.take(report(65, counts(1, 0, seen=(40, 20), kept=(3, 1))))
    words = "A waits for B, which has sent nothing since 2026-01-01T00:00:05Z"
    assert found.words == words
    with pytest.warns(WJoinWarning, match=f"WJ823.*in the query out {words}") as warned:
        found.tend()
        found.tend()
    assert len(warned) == 1
    found.take(report(70, counts(1, 1, seen=(50, 50), kept=(1, 1))))
    assert found.words == ""
    found.take(report(130, counts(1, 0, seen=(90, 50), kept=(1, 1))))
    with pytest.warns(WJoinWarning, match="since 2026-01-01T00:01:10Z"):
        found.end()


@pytest.mark.parametrize(
    "last",
    [
        # It has come further than the others.
        counts(1, 0, seen=(30, 40), kept=(3, 1)),
        # Nothing waits.
        counts(1, 0, seen=(30, 20), kept=(0, 1)),
    ],
)
def test_a_stream_for_which_nobody_waits_is_not_told_of(last: dict[str, int | None]) -> None:
    found = Silence("the query out")
    found.take(report(0, counts(1, 1, seen=(10, 20), kept=(1, 1))))
    found.take(report(100, last))
    assert found.words == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.end()


def test_a_stream_with_idle_after_is_told_of_and_nobody_warned() -> None:
    found = Silence("the query out")
    found.take(report(0, counts(1, 1, seen=(10, 10), kept=(1, 1))))
    silent = {"silent:B": 1_767_225_600_000_000}
    found.take(report(70, counts(1, 0, seen=(90, 95), kept=(1, 0), **silent)))
    assert found.words == "B has sent nothing since 2026-01-01T00:00:00Z, and is not waited for (IDLE AFTER)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.end()


def test_a_stream_that_has_sent_nothing_yet_and_several_that_wait_for_it() -> None:
    """The first stage tells nothing where only a stream of the second has rows."""
    nothing = -(1 << 63)
    first: dict[str, int | None] = counts(1, 1, seen=(10, 20), kept=(1, 1))
    second: dict[str, int | None] = {
        "rows:C": 0,
        "seen:C": nothing,
        "delay:C": 0,
        "kept:C": 0,
        "rows:A": None,
    }
    found = Silence("the query out")
    found.take(report(0, first, second))
    found.take(report(90, first, second))
    assert found.words == "A and B wait for C, which has sent nothing since 2026-01-01T00:00:00Z"
