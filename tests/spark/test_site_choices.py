"""What an approximate join over sites tells of itself in the offsets of its streams."""

from dataclasses import replace

from wjoin.executor.sites.likely_offsets import Reached
from wjoin.executor.sites.likely_told import SiteCosts, Told
from wjoin.measured.points import Point
from wjoin.measured.progress import read
from wjoin.measured.visits import visits_words

BEGIN = Reached(("x",), (0,))
FIRST = Told(90.0, 10.0, 5.0, 20.0, 1, {"grpc://a:1": SiteCosts(100, 3, 200)})
SECOND = Told(180.0, 20.0, 14.0, 26.0, 1, {"grpc://a:1": SiteCosts(200, 6, 400)})


def report(batch: int, begin: Told | None, end: Told) -> dict[str, object]:
    offsets = {
        name: None if told is None else replace(BEGIN, told=told).to_json()
        for name, told in (("startOffset", begin), ("endOffset", end))
    }
    return {"id": "1", "batchId": batch, "sources": [{"numInputRows": 25, **offsets}], "numInputRows": 25}


def test_micro_batches_add_up_to_what_the_last_offset_tells() -> None:
    """A query that goes on with its checkpoint tells what it has done since."""
    first, second = read(report(0, None, FIRST)), read(report(1, FIRST, SECOND))
    assert first.results_lost == (0.1, 5 / 95, 20 / 110)
    assert first.sites == {"grpc://a:1": {"rows": 100, "messages": 3, "summary_bytes": 200}}
    points = [Point(begins=0.0, ends=1.0, choices=each.choices, sites=each.sites) for each in (first, second)]
    whole = points[0].joined(points[1])
    assert whole.approximate
    assert whole.results_lost == (0.1, 14 / 194, 26 / 206)
    assert whole.sites["grpc://a:1"]["messages"] == 6
    assert "6 requests, about 10.0 % of the results lost, 7.2 to 12.6 %, 1 late row dropped" in visits_words(
        whole
    )


def test_offsets_of_other_sources_and_older_ones_tell_nothing() -> None:
    """Those of a checkpoint that an earlier version has begun have no account."""
    plain = {"id": "1", "batchId": 0, "sources": [{"numInputRows": 1, "endOffset": {"sites": []}}]}
    assert not read({**plain, "numInputRows": 1}).approximate
    older = Reached.of_json({"sites": [{"lineage": "x", "next": 3}]})
    assert (older.told, older.low) == (Told(), None)
