"""What Prometheus is told, read by its own parser."""

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from tests.explain.drawn import HOSTILE
from tests.web.shown import BEGAN, CHAIN, batches, known, report
from wjoin.web.prometheus import exposition


def families(*queries):
    text = exposition([replace(each, clock=BEGAN + 10) for each in queries])
    assert text.endswith("\n")
    return {each.name: each for each in text_string_to_metric_families(text)}


def value(found, name, **labels):
    (only,) = [each.value for each in found[name].samples if labels.items() <= each.labels.items()]
    return only


def test_every_metric_has_help_a_type_and_values():
    found = families(known(reports=batches(10, late=2)))
    assert all(each.documentation and each.type in ("counter", "gauge") for each in found.values())
    assert found["wjoin_rows"].type == "counter"
    assert found["wjoin_rows"].samples[0].name == "wjoin_rows_total"
    assert found["wjoin_state_rows"].type == "gauge"
    assert value(found, "wjoin_rows", query="pairs", stream="B") == 2000
    assert value(found, "wjoin_rows_dropped", query="pairs", stream="A", reason="late") == 20
    assert value(found, "wjoin_comparisons", query="pairs", join="1", stage="1") == 1000
    assert value(found, "wjoin_results", query="pairs") == 100
    assert value(found, "wjoin_state_rows", stream="C") == 1500
    assert value(found, "wjoin_state_bytes") == 300_000
    assert value(found, "wjoin_micro_batches") == 10
    assert value(found, "wjoin_micro_batch_seconds") == 5
    assert value(found, "wjoin_micro_batch_part_seconds", part="addBatch") == 4
    assert value(found, "wjoin_task_layer_seconds", layer="joining") == 0.5
    assert value(found, "wjoin_task_layer_seconds", layer="packing") > 0.5
    assert value(found, "wjoin_lag_seconds", stream="A") == 1.5
    assert value(found, "wjoin_query_up") == 1
    assert value(found, "wjoin_expected_state_rows") > 0


def test_stages_of_a_join_count_from_one():
    found = families(known(sql=CHAIN, reports=batches(3, stages=2)))
    assert value(found, "wjoin_matches", stage="2") == 60


def test_hostile_names_stay_what_they_are():
    hostile = HOSTILE + '\n"} 1\nwjoin_query_up{query="forged"} 1\\'
    found = families(known(hostile, reports=[report(0, BEGAN, {hostile: 5})], sink=hostile))
    (info,) = found["wjoin_query_info"].samples
    assert (info.labels["query"], info.labels["sink"]) == (hostile, hostile)
    assert value(found, "wjoin_rows", stream=hostile) == 5
    assert len(found["wjoin_query_up"].samples) == 1


def test_of_several_runs_of_a_query_the_newest_counts_and_no_series_comes_twice():
    first = known(reports=batches(2), state="failed", run="one")
    second = known(reports=batches(5), run="two")
    found = families(first, known("other", None, [report(0, BEGAN)]), second)
    for family in found.values():
        shown = [(each.name, tuple(sorted(each.labels.items()))) for each in family.samples]
        assert len(shown) == len(set(shown))
    assert value(found, "wjoin_micro_batches", query="pairs") == 5
    assert value(found, "wjoin_query_failed", query="pairs") == 0


def test_without_queries_there_is_nothing():
    assert exposition([]) == ""
