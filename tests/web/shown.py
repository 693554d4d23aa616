"""Queries to show: plans of the catalogue, with reports as Spark writes them."""

import http.client
import json
from datetime import UTC, datetime
from typing import Any

from tests.plans.catalogue import plan
from wjoin.measured.points import Point
from wjoin.measured.progress import Progress, read
from wjoin.measured.totals import Totals
from wjoin.planner.explain.describe import describe
from wjoin.web.page_server import Web
from wjoin.web.present import QueryState

BEGAN = 1_700_000_000.0
"""When the queries were started, in seconds since 1970."""

CHAIN = (
    "SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW (A, B) = 5 s AND WINDOW (B, C) = 3 s "
    "WHERE A.obj_id = B.obj_id AND B.speed = C.speed"
)
"""A join in two stages."""

STAR = (
    "SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s "
    "WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id"
)
"""A join in one stage."""


def iso(seconds: float) -> str:
    """Return a time as Spark writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def report(
    batch: int,
    started: float,
    rows: dict[str, int] | None = None,
    *,
    seconds: float = 0.5,
    join: int = 7,
    stages: int = 1,
    late: int = 0,
) -> Progress:
    """Return a report of a micro-batch with so many rows of each stream, or of an idle time without."""
    took = round(seconds * 1000)
    body: dict[str, Any] = {
        "name": "pairs",
        "batchId": batch,
        "timestamp": iso(started),
        "batchDuration": took,
        "numInputRows": sum((rows or {}).values()),
        "durationMs": {"triggerExecution": took, "latestOffset": 20},
    }
    if rows is not None:
        body["durationMs"] |= {"addBatch": took - 100, "queryPlanning": 30, "walCommit": 10}
        observed = {}
        for stage in range(stages):
            counts = {"matches": 10 * (stage + 1), "comparisons": 100 * (stage + 1)}
            counts |= {"joining": 50_000, "keeping": 10_000}
            if stage == 0:
                for name, count in rows.items():
                    seen = round((started - 1) * 1e6)
                    counts |= {f"rows:{name}": count, f"seen:{name}": seen, f"delay:{name}": 2_000_000}
                    counts |= {f"kept:{name}": 5 * count, f"kept_bytes:{name}": 500 * count}
                    counts |= {f"packing:{name}": 20_000}
                    counts |= {f"late:{name}": late, f"undated:{name}": 0, f"ahead:{name}": 0}
            observed[f"wjoin:{join}:{stage}"] = {"counts": counts}
        body["observedMetrics"] = observed
    return read(json.loads(json.dumps(body)))


def known(
    name: str = "pairs", sql: str | None = STAR, reports: list[Progress] | None = None, **more: Any
) -> QueryState:
    """Return what is known of a query: its plan by its statement, None of one without a W-join."""
    totals = Totals()
    totals.total = Point(begins=BEGAN, ends=BEGAN)
    for each in reports or []:
        totals.add(each)
    plans = {} if sql is None else {7: plan(sql)}
    documents = {number: describe(each) for number, each in plans.items()}
    told = {"run": f"run-of-{name}", "id": "an-id", "name": name, "called": name, "state": "running"} | more
    return QueryState(
        started=BEGAN, hour=totals.hour(), plans=plans, documents=documents, statement=sql, **told
    )


def batches(count: int, **more: Any) -> list[Progress]:
    """Return reports of so many micro-batches, one a second, with 100 rows of A, 200 of B, 300 of C."""
    rows = {"A": 100, "B": 200, "C": 300}
    return [report(number, BEGAN + 0.5 + number, rows, **more) for number in range(count)]


def asked(web: Web, path: str, *, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    """Return the answer of a served picture; its text is in ``text``."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer
