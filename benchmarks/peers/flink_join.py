"""The join of peers.py by Flink: python flink_join.py FOLDER [--count]."""

import json
import os
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

# It has no option for a first line of names: that is a row without a key, of 1970.
STREAM = """CREATE TABLE {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING,
ts AS TO_TIMESTAMP_LTZ(COALESCE(millis, 0), 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{1}/{0}', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true')"""
JOIN = """SELECT A.badge, A.payload AS a, B.payload AS b, C.payload AS c FROM a A, b B, c C
WHERE A.badge = B.badge AND B.badge = C.badge AND {} AND {} AND {}"""
BETWEEN = "{0}.ts BETWEEN {1}.ts - INTERVAL '5' SECOND AND {1}.ts + INTERVAL '5' SECOND"

tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
tables.get_config().set("parallelism.default", str(os.cpu_count()))
for stream in "abc":
    tables.execute_sql(STREAM.format(stream, sys.argv[1]))
tables.execute_sql(
    "CREATE TABLE results (badge BIGINT, a STRING, b STRING, c STRING) WITH ('connector' = 'blackhole')"
)
join = JOIN.format(*(BETWEEN.format(*each) for each in ("AB", "BC", "AC")))
began = time.monotonic()
told = {}
if "--count" in sys.argv:
    with tables.execute_sql(join).collect() as rows:
        told["results"] = sum(1 for _ in rows)
else:
    tables.execute_sql(f"INSERT INTO results {join}").wait()
print(json.dumps({"seconds": time.monotonic() - began, **told}))
