"""The joins of peers.py by Flink: python flink_join.py FOLDER STATEMENTS [--count]."""

import json
import os
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment
from statements import statements

# It has no option for a first line of names: that is a row without a key, of 1970.
STREAM = """CREATE TABLE {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING,
ts AS TO_TIMESTAMP_LTZ(COALESCE(millis, 0), 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{1}/{0}', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true')"""
BETWEEN = "{0}.ts BETWEEN {1}.ts - INTERVAL '{2}' SECOND AND {1}.ts + INTERVAL '{2}' SECOND"

folder, count = sys.argv[1], int(sys.argv[2])
counting = "--count" in sys.argv
# A batch counts on its own; rows of a stream would reach Python one by one.
settings = EnvironmentSettings.in_batch_mode() if counting else EnvironmentSettings.in_streaming_mode()
tables = TableEnvironment.create(settings)
tables.get_config().set("parallelism.default", str(os.cpu_count()))
for stream in "abc":
    tables.execute_sql(STREAM.format(stream, folder))
joins = []
for window, select, condition in statements(count):
    bounds = " AND ".join(BETWEEN.format(*pair, window) for pair in ("AB", "BC", "AC"))
    joins.append(f"{select} FROM a A, b B, c C WHERE {condition} AND {bounds}")
    tables.execute_sql(
        f"CREATE TABLE results{len(joins)} (badge BIGINT, a STRING, b STRING, c STRING) "
        "WITH ('connector' = 'blackhole')"
    )
began = time.monotonic()
told = {}
if counting:
    told["results"] = 0
    for join in joins:
        with tables.execute_sql(f"SELECT COUNT(*) FROM ({join})").collect() as rows:
            told["results"] += sum(row[0] for row in rows)
else:
    of_all = tables.create_statement_set()
    for number, join in enumerate(joins, start=1):
        of_all.add_insert_sql(f"INSERT INTO results{number} {join}")
    of_all.execute().wait()
print(json.dumps({"seconds": time.monotonic() - began, **told}))
