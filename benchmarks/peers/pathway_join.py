"""The join of peers.py by Pathway: python pathway_join.py FOLDER [--count]."""

import json
import sys
import time

import pathway as pw


class Row(pw.Schema):
    """A row of a stream."""

    badge: int
    other: int
    millis: int
    payload: str


WINDOW = 5_000
folder = sys.argv[1]
a, b, c = (pw.io.csv.read(f"{folder}/{each}", schema=Row, mode="static") for each in "abc")
window = pw.temporal.interval(-WINDOW, WINDOW)
pairs = pw.temporal.interval_join(a, b, a.millis, b.millis, window, a.badge == b.badge).select(
    badge=a.badge, first=a.millis, second=b.millis, a=a.payload, b=b.payload
)
joined = pw.temporal.interval_join(pairs, c, pairs.second, c.millis, window, pairs.badge == c.badge).select(
    badge=pairs.badge, apart=c.millis - pairs.first, a=pairs.a, b=pairs.b, c=c.payload
)
results = joined.filter((pw.this.apart <= WINDOW) & (pw.this.apart >= -WINDOW))
told = {}
if "--count" in sys.argv:
    total = results.reduce(count=pw.reducers.count())
    pw.io.subscribe(total, lambda key, row, time, is_addition: told.update(results=row["count"]))
else:
    pw.io.null.write(results)
began = time.monotonic()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
print(json.dumps({"seconds": time.monotonic() - began, **told}))
