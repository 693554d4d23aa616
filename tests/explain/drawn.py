"""Documents to draw: windows over two to eight streams, alternatives, stages, hostile names."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

from tests.kit.planned import plan_over, stream_of
from tests.plans.catalogue import plan
from wjoin.grammar.plain import plain
from wjoin.planner.catalog import Estimate, Origin, SiteFacts
from wjoin.planner.choose.layouts import FREE, of_checkpoint
from wjoin.planner.explain import page as html
from wjoin.planner.explain import phrases
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.document import Document

HOSTILE = '<script>alert("x")</script> & \\ \' ]]> %s \x1b\u202e'
"""An alias with everything that ends a string, a tag or a line somewhere."""


def drawn(sql: str) -> dict[str, Any]:
    """Return the document of a statement over the catalogue, as it is in JSON."""
    return plain(describe(plan(sql)))


def read(found: dict[str, Any]) -> Document:
    """Return a document from what it is in JSON."""
    return _typed(Document, found)


def _typed(kind: Any, value: Any) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _typed(hint, value[name.rstrip("_")]) for name, hint in hints.items()})
    if isinstance(value, list):
        items = next(each for each in (kind, *get_args(kind)) if get_origin(each) is tuple)
        return tuple(_typed(get_args(items)[0], each) for each in value)
    if isinstance(value, dict) and (entries := [each for each in get_args(kind) if is_dataclass(each)]):
        return _typed(entries[0], value)
    return value


def page(documents: Sequence[dict[str, Any]], title: str) -> str:
    """Return the page of documents in JSON."""
    return html.page(list(map(read, documents)), title)


def fragment(documents: Sequence[dict[str, Any]]) -> str:
    """Return the page's content of documents in JSON."""
    return html.fragment(list(map(read, documents)))


def alternatives(document: dict[str, Any]) -> list[list[phrases.CompletedWindow]]:
    """Return the windows of a document in JSON."""
    return phrases.alternatives(read(document))


def chain(streams: int, *, wide: bool = False) -> dict[str, Any]:
    """Return a join of so many streams with windows between neighbours, and one to tighten."""
    names = "ABCDEFGHIJKLMN"[:streams]
    tables = ", ".join(f"camera{number % 3 + 1} {name}" for number, name in enumerate(names))
    unit = "HOURS 30 MINUTES 15 SECONDS" if wide else "SECONDS"
    windows = [f"WINDOW ({a}, {b}) = {number} {unit}" for number, (a, b) in enumerate(pairwise(names), 1)]
    if wide:
        windows[0] = f"WINDOW (A, B) BETWEEN -1500 ms AND 1 {unit}"
    if streams > 2:
        windows.append(f"WINDOW ({names[0]}, {names[-1]}) = 3 DAYS")
    keys = " AND ".join(f"{a}.obj_id = {b}.obj_id" for a, b in pairwise(names))
    return drawn(
        f"SELECT A.frame FROM {tables} WINDOW {' AND '.join(windows)[7:]} WHERE A.speed > 3 AND {keys}"
    )


def path() -> dict[str, Any]:
    """Return a join with two alternatives."""
    return drawn(
        "SELECT A.frame FROM camera1 A, camera2 B, camera3 C PATH (A, B, C) WITHIN (5 s, 8 s) BIDIRECTIONAL "
        "WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id"
    )


def stages() -> dict[str, Any]:
    """Return a join in two stages, with a condition after them."""
    return drawn(
        "SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s "
        "WHERE A.obj_id = B.obj_id AND B.frame = C.frame AND A.speed + B.speed > C.speed"
    )


def static() -> dict[str, Any]:
    """Return a join of two streams and a static relation."""
    return drawn(
        "SELECT A.frame FROM camera1 A, camera2 B, table1 V WINDOW (A, B) = 5 s AND WINDOW (A, V) = 1 HOUR "
        "WHERE A.obj_id = B.obj_id AND A.obj_id = V.obj_id"
    )


def one_stream() -> dict[str, Any]:
    """Return a join of one stream with a static relation: there are no stages."""
    return drawn("SELECT A.frame FROM camera1 A, table1 V WINDOW (A, V) = 1 HOUR WHERE A.obj_id = V.obj_id")


def one_sided() -> dict[str, Any]:
    """Return a join whose rows are never dropped, with a pair of streams that has no bound."""
    return drawn("SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW A = 5 s")


def native() -> dict[str, Any]:
    """Return a join that Spark runs itself."""
    return drawn(
        "SELECT /*+ PLAN(NATIVE) */ A.frame FROM camera1 A, camera2 B WINDOW (A, B) = 5 s "
        "WHERE A.obj_id = B.obj_id"
    )


def slices() -> dict[str, Any]:
    """Return a join without a key whose stages share out slices of time."""
    return drawn(
        "SELECT /*+ PLAN(PSP, 4) */ A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s "
        "WHERE A.speed < B.speed AND B.speed < C.speed"
    )


def hops() -> dict[str, Any]:
    """Return a join without a key whose partial results go from hop to hop: B is kept in two of them."""
    return _hopping(
        "hops",
        "SELECT /*+ PLAN(PSP, 3) */ A.n FROM a A, b B, c C, d D WINDOW = 5 SECONDS "
        "WHERE A.x < B.x AND B.x < C.x AND C.x < D.x",
    )


def at_once() -> dict[str, Any]:
    """Return a join without a key whose new rows meet all other streams at once."""
    return _hopping(
        "at once",
        "SELECT /*+ PLAN(PSP, 3) */ A.n FROM a A, b B, c C WINDOW = 5 SECONDS "
        "WHERE A.x < B.x AND B.x < C.x AND abs(A.x - C.x) > 3",
    )


def _hopping(form: str, sql: str) -> dict[str, Any]:
    streams = [stream_of({"n": "bigint", "x": "double"})] * (sql.count(",", 0, sql.index("WINDOW")))
    found = plan_over(sql, streams, layouts=FREE).candidates
    layout = next(each.layout for each in found if each.layout.stages.startswith(form))
    return plain(describe(plan_over(sql, streams, layouts=of_checkpoint(layout))))


def copies() -> dict[str, Any]:
    """Return a join of which one stream is in slices of time, and the others are copied."""
    return drawn(
        "SELECT /*+ PLAN(ATR) */ A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s "
        "WHERE A.speed < B.speed AND B.speed < C.speed"
    )


def integral() -> dict[str, Any]:
    """Return a join over whole-number event time."""
    return drawn("SELECT A.v FROM ticks A, ticks B WINDOW (A, B) BETWEEN 2 AND 5 WHERE A.v = B.v")


def hostile() -> dict[str, Any]:
    """Return a join whose texts try to be markup."""
    return renamed(chain(3), {"A": HOSTILE, "camera1": HOSTILE, "A.obj_id": HOSTILE, "A.speed > 3": HOSTILE})


def at_sites() -> dict[str, Any]:
    """Return a join of streams at sites, two of which may send partial tuples."""
    columns = {"id": "bigint", "payload": "binary"}
    local = stream_of(columns, {"rate": 1000, "distinct.id": 100_000})
    link = Estimate(0.005, Origin.MEASURED), Estimate(1e6, Origin.MEASURED)
    remote = replace(local, site=SiteFacts({"ts": 8.0, "id": 8.0, "payload": 1400.0}, *link))
    sql = (
        "SELECT A.payload, B.payload, C.id FROM a A, b B, c C WINDOW = 5 s WHERE A.id = B.id AND B.id = C.id"
    )
    return plain(describe(plan_over(sql, [remote, remote, local])))


_LONG = "the_camera_at_the_gate_of_building_17"


def long_names() -> dict[str, Any]:
    """Return a join of streams whose names and columns are much longer than a box."""
    sql = (
        "SELECT X.frame AS X_frame, B.frame FROM camera1 AS X, camera2 B, camera3 AS X_2 "
        "WINDOW (X, B) = 5 s AND WINDOW (B, X_2) = 3 s OR WINDOW (B, X) = 7 s AND WINDOW (X, X_2) = 90 MIN "
        "WHERE X.obj_id = B.obj_id AND B.obj_id = X_2.obj_id AND upper(X.frame) LIKE 'X%'"
    )
    return drawn(sql.replace("X", _LONG))


def renamed(found: Any, names: dict[str, str]) -> Any:
    """Return a document with other texts, keys included."""
    if isinstance(found, dict):
        return {names.get(key, key): renamed(value, names) for key, value in found.items()}
    if isinstance(found, list):
        return [renamed(value, names) for value in found]
    return names.get(found, found) if isinstance(found, str) else copy.copy(found)


ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "two streams": partial(chain, 2),
    "three streams": partial(chain, 3),
    "five streams": partial(chain, 5),
    "eight streams": partial(chain, 8),
    "eight streams, wide labels": partial(chain, 8, wide=True),
    "twelve streams": partial(chain, 12),
    "alternatives": path,
    "stages": stages,
    "static": static,
    "one stream": one_stream,
    "one-sided": one_sided,
    "native": native,
    "slices": slices,
    "hops": hops,
    "at once": at_once,
    "copies": copies,
    "integral": integral,
    "hostile": hostile,
    "sites": at_sites,
    "long names": long_names,
}
"""What there is to draw, by name."""


SLOW = ["at once", "eight streams, wide labels", "hops"]
"""Those of which planning or drawing takes seconds."""


@cache
def named(name: str) -> dict[str, Any]:
    """Return a document of ALL; planning one takes up to seconds."""
    return ALL[name]()
