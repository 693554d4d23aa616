"""The joins of peers.py by Flink: python flink_join.py FOLDER STATEMENTS [--count]; "left" is a LEFT JOIN."""

import json
import os
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment
from statements import LEFT, LEFT_WINDOW, statements

# It has no option for a first line of names: that is a row without a key, of 1970.
STREAM = """CREATE TABLE {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING,
ts AS TO_TIMESTAMP_LTZ(COALESCE(millis, 0), 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{1}/{0}', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true')"""
BETWEEN = "{0}.ts BETWEEN {1}.ts - INTERVAL '{2}' SECOND AND {1}.ts + INTERVAL '{2}' SECOND"

folder, asked = sys.argv[1:3]
streams = sorted(each.name for each in Path(folder).iterdir())
counting = "--count" in sys.argv
# A batch counts on its own; rows of a stream would reach Python one by one.
settings = EnvironmentSettings.in_batch_mode() if counting else EnvironmentSettings.in_streaming_mode()
tables = TableEnvironment.create(settings)
tables.get_config().set("parallelism.default", str(os.cpu_count()))
for stream in streams:
    tables.execute_sql(STREAM.format(stream, folder))
joins = []
if asked == "left":
    joins.append(f"{LEFT} AND {BETWEEN.format('A', 'B', LEFT_WINDOW)}")
else:
    for window, select, condition in statements(int(asked)):
        bounds = " AND ".join(BETWEEN.format(*pair, window) for pair in ("AB", "BC", "AC"))
        joins.append(f"{select} FROM a A, b B, c C WHERE {condition} AND {bounds}")
columns = ", ".join(f"{stream} STRING" for stream in streams)
for number in range(1, len(joins) + 1):
    tables.execute_sql(
        f"CREATE TABLE results{number} (badge BIGINT, {columns}) WITH ('connector' = 'blackhole')"
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
