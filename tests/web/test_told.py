"""What the page and its JSON tell of a query."""

import json
from dataclasses import replace

from tests.plans.catalogue import plan
from tests.web.shown import BEGAN, CHAIN, STAR, batches, known, report
from wjoin.measured.expected import expected_rows
from wjoin.measured.totals import MOST_POINTS
from wjoin.web.told import detail, line


def told(query, clock=BEGAN + 20.0, since=None, width=None):
    found = detail(replace(query, clock=clock), since, width)
    return json.loads(json.dumps(found, allow_nan=False))


def test_rates_are_those_of_the_last_seconds():
    found = told(known(reports=batches(30)), BEGAN + 30)
    assert found["numbers"]["rows_per_second"] == {"A": 100, "B": 200, "C": 300}
    assert found["rows_per_second"] == 600
    assert found["told"] == "600 rows/s"
    assert found["numbers"]["lag_seconds"] == dict.fromkeys("ABC", 1.5)
    assert found["streams"]["rows"][0][:4] == ["A", "100", "3,000", "1.5 s"]


def test_an_idle_or_ended_query_does_nothing_at_present_and_an_idle_one_falls_behind():
    for state in ("idle", "failed", "ended", "stopped"):
        found = told(known(reports=batches(5), state=state), BEGAN + 100)
        assert found["rows_per_second"] == found["matches_per_second"] == 0
        assert found["numbers"]["lag_seconds"]["A"] == (96.5 if state == "idle" else 1.5)
    # A micro-batch a minute is no idle time.
    slow = [report(n, BEGAN + 60 * n, {"A": 60}, seconds=1) for n in range(1, 5)]
    assert told(known(reports=slow, state="idle"), BEGAN + 270)["rows_per_second"] == 1


def test_the_estimates_stand_beside_what_is():
    found = told(known(reports=batches(10)))
    rows = {each[0]: each[1:] for each in found["compared"]["rows"]}
    assert rows["A: rows per second of event time"][1:] == ["100", "0.1 ×"]
    expected = plan(STAR).candidates[0].estimated.cost
    comparisons = expected.comparisons / expected_rows([plan(STAR)])
    assert float(rows["comparisons a row"][0]) == float(f"{comparisons:.3g}")
    assert rows["comparisons a row"][1] == "0.167"
    assert rows["bytes of state"][1] == "300 kB"
    far = [found["compared"]["rows"][place][0] for place in found["compared"]["far"]]
    assert "A: rows per second of event time" in far


def test_the_state_is_told_by_stream_with_what_a_longer_window_adds():
    rows = told(known(reports=batches(10)))["state_by_stream"]["rows"]
    kept = "kept for 10 s, until B has passed, with its delay of 5 s: window (A, B)"
    assert rows[0] == ["A", "50 kB", kept, "–"]
    # 50 kB of A in 10 s, and 100 kB of B in 7 s.
    assert ["1 s more of window (A, B)", "+ 19.3 kB", "", ""] in rows


def test_stages_are_told_one_by_one_where_there_are_several():
    found = told(known(sql=CHAIN, reports=batches(10, stages=2)))
    labels = [each[0] for each in found["compared"]["rows"]]
    assert {"stage 1: comparisons a row", "stage 2: matches a row"} <= set(labels)
    assert found["live"]["7:compared:1"] == "200 comparisons/s"
    assert next(each for each in found["charts"] if each["key"] == "matched")["series"] == [
        "stage 1",
        "stage 2",
    ]


def test_every_place_of_the_drawing_has_its_text():
    from wjoin.planner.explain.page import drawn

    query = known(sql=CHAIN, reports=batches(10, stages=2))
    markup = drawn({str(number): each for number, each in query.documents.items()})
    names = {each.split('"')[0] for each in markup.split('data-live="')[1:]}
    assert names == told(query)["live"].keys()
    assert len(names) == 3 * 3 + 2 * 2 + 1


def test_a_query_without_a_window_join_has_its_numbers():
    found = told(known("plain", None, [report(n, BEGAN + n, {"x": 5}, stages=0) for n in range(3)]))
    assert found["numbers"]["rows"] == {"all sources": 15}
    assert found["joins"] == found["compared"]["rows"] == found["streams"]["rows"] == []
    assert [each["key"] for each in found["charts"]] == ["rows", "lost", "parts"]


def test_a_query_that_has_just_been_started_has_a_page():
    found = told(known(reports=[], state="starting"), BEGAN + 1)
    assert found["history"]["ends"] == []
    assert found["rows_per_second"] == 0
    assert line(known(reports=[], clock=BEGAN))["state"] == "running"


def test_only_new_points_are_told_to_whoever_knows_the_others():
    query = known(reports=batches(30))
    whole = told(query)["history"]
    assert whole["whole"] and len(whole["ends"]) == 30
    assert whole["values"]["rows"][1] == [200.0] * 30
    news = told(query, since=whole["begins"][-2], width=whole["width"])["history"]
    assert not news["whole"]
    assert news["ends"] == whole["ends"][-2:]
    assert news["values"]["rows"] == [each[-2:] for each in whole["values"]["rows"]]
    assert told(query, since=whole["begins"][-2], width=2.0)["history"]["whole"]


def test_the_parts_of_a_micro_batch_add_up_to_its_time():
    found = told(known(reports=batches(3)))
    (chart,) = [each for each in found["charts"] if each["key"] == "parts"]
    assert chart["stacked"] and chart["series"][-1] == "the rest"
    assert [round(sum(column), 6) for column in zip(*found["history"]["values"]["parts"], strict=True)] == [
        0.5
    ] * 3


def test_layers_are_drawn_in_the_order_of_rows_in_seconds_of_one_micro_batch():
    found = told(known(reports=batches(3)))
    (chart,) = [each for each in found["charts"] if each["key"] == "layers"]
    assert chart["stacked"] and chart["series"] == ["packing for the workers", "state", "join"]
    assert [set(each) for each in found["history"]["values"]["layers"]] == [{0.06}, {0.01}, {0.05}]


def test_a_long_history_stays_small():
    reports = [report(n, BEGAN + n, {"A": 1, "B": 1, "C": 1}) for n in range(4000)]
    found = told(known(reports=reports), BEGAN + 4000)
    assert len(found["history"]["ends"]) <= MOST_POINTS
    assert len(json.dumps(found)) < 300_000


def test_who_waits_for_a_silent_stream_is_a_note_of_the_query():
    words = "A waits for B, which has sent nothing since 12:00:10"
    assert told(known(reports=batches(3), note=words))["note"] == words
    assert not told(known(reports=batches(3)))["note"]
