"""The numbers of queries as Prometheus reads them."""

from collections.abc import Iterable, Iterator, Sequence

from wjoin.measured.layers import WHOLE
from wjoin.measured.progress import LEAST_TIMESTAMP
from wjoin.sites.exposition import Metric, Sample
from wjoin.sites.exposition import exposition as as_text
from wjoin.web.charts import rows_of
from wjoin.web.present import QueryState, joins_of


def exposition(queries: Sequence[QueryState]) -> str:
    """Return the text; of several queries of one name the newest counts."""
    newest = {each.called: each for each in queries}
    found: dict[str, Metric] = {}
    for name, at in newest.items():
        for each in metrics(at):
            samples = tuple(({"query": name, **labels}, value) for labels, value in each.samples)
            before = found[each.name].samples if each.name in found else ()
            found[each.name] = Metric(each.name, each.kind, each.help, before + samples)
    return as_text(found.values())


def metrics(at: QueryState) -> Iterator[Metric]:
    """Yield the metrics of a query."""
    total = at.hour.total
    labels = {"run": at.run, "id": at.id, "sink": at.sink or ""}
    yield _gauge("query_info", "The run of a query.", [(labels, 1)])
    yield _gauge("query_up", "1 while the query runs, else 0.", [({}, int(at.active))])
    failed = int(at.state == "failed")
    yield _gauge("query_failed", "1 where the query has failed, else 0.", [({}, failed)])
    yield _gauge("query_start_time_seconds", "When the query was started.", [({}, at.started)])
    yield _counter("micro_batches_total", "Micro-batches done.", [({}, total.batches)])
    yield _counter("micro_batch_seconds_total", "Time of the micro-batches.", [({}, total.seconds)])
    parts = [({"part": name}, took / 1000) for name, took in total.parts.items() if name != WHOLE]
    yield _counter("micro_batch_part_seconds_total", "Time of the parts of the micro-batches.", parts)
    layers = [({"layer": name}, took / 1e6) for name, took in total.layers.items()]
    yield _counter("task_layer_seconds_total", "Time of the tasks of window joins, by layer.", layers)
    yield _counter("rows_total", "Rows read.", _by("stream", rows_of(total).items()))
    lost = [
        ({"stream": stream, "reason": reason}, float(count))
        for reason, counts in zip(("late", "no_time", "ahead", "shed"), total.losses.values(), strict=True)
        for stream, count in counts.items()
    ]
    least, most = total.results_lost[1:]
    bounds = [({"bound": "least"}, least), ({"bound": "most"}, most)]
    yield _gauge("results_lost_ratio", "The share of the results lost, estimated.", bounds)
    lost += [({"stream": "", "reason": "spark"}, float(total.dropped_by_spark))]
    yield _counter("rows_dropped_total", "Rows dropped, by reason.", lost)
    yield _counter(
        "comparisons_total", "Comparisons of a combination with a row.", _stages(at, "comparisons")
    )
    yield _counter("matches_total", "Combinations that a stage has made.", _stages(at, "matches"))
    yield _counter("results_total", "Results of the window joins.", [({}, total.matches)])
    yield _gauge("state_rows", "Rows that the window joins keep.", _by("stream", total.state_rows.items()))
    yield _gauge("state_bytes", "Size of what they keep.", [({}, total.state_bytes)])
    yield _gauge(
        "spark_state_rows", "Rows in the state of Spark's operators.", [({}, total.spark_state_rows)]
    )
    yield _gauge("spark_state_bytes", "Size of that state.", [({}, total.spark_state_bytes)])
    yield _gauge("lag_seconds", "How far the newest row is behind the clock.", _by("stream", at.lag.items()))
    yield _gauge("event_time_seconds", "The greatest event time.", _times(total.seen.items()))
    yield _gauge("watermark_seconds", "The watermark.", _times(total.watermarks.items()))
    costs = [each.chosen for each in at.documents.values()]
    if costs:
        yield _gauge(
            "expected_state_rows", "Rows of state expected.", [({}, sum(e.state_rows for e in costs))]
        )


def _gauge(name: str, help: str, samples: Sequence[Sample]) -> Metric:
    return Metric(f"wjoin_{name}", "gauge", help, tuple(samples))


def _counter(name: str, help: str, samples: Sequence[Sample]) -> Metric:
    return Metric(f"wjoin_{name}", "counter", help, tuple(samples))


def _by(label: str, values: Iterable[tuple[str, float]]) -> list[Sample]:
    return [({label: name}, value) for name, value in values]


def _stages(at: QueryState, name: str) -> list[Sample]:
    """Return the counts of stages; W-joins and stages are counted from 1."""
    joins = joins_of(at)
    found = ((*map(int, key.split(".")), count) for key, count in at.hour.total.by_stage(name).items())
    return [
        ({"join": str(joins.index(join) + 1), "stage": str(stage + 1)}, count) for join, stage, count in found
    ]


def _times(values: Iterable[tuple[str, int]]) -> list[Sample]:
    """Return event times in seconds since 1970, of streams whose event time is a time."""
    return _by("stream", ((name, value / 1e6) for name, value in values if value >= LEAST_TIMESTAMP))
