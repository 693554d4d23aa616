"""The joins of peers.py by wjoin: python wjoin_join.py FOLDER STATEMENTS [--count]; "left" is a LEFT JOIN."""

import json
import sys
import time
from pathlib import Path

from statements import LEFT, LEFT_WINDOW, statements

import wjoin

STREAM = """CREATE STREAM {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING, ts AS
timestamp_millis(millis)) USING csv OPTIONS (path '{1}/{0}', header '{2}', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 1 SECOND"""

folder, asked = Path(sys.argv[1]), sys.argv[2]
session = wjoin.connect(**{"spark.sql.shuffle.partitions": "2"})
for stream in sorted(each.name for each in folder.iterdir()):
    session.sql(STREAM.format(stream, folder, asked != "left"))
joins = []
if asked == "left":
    joins.append(f"{LEFT} WINDOW (A, B) = {LEFT_WINDOW} SECONDS")
else:
    for window, select, condition in statements(int(asked)):
        joins.append(f"{select} FROM a A, b B, c C WINDOW = {window} SECONDS WHERE {condition}")
for number in range(len(joins)):
    session.sql(f"CREATE SINK out{number} USING noop")
inserts = [f"INSERT INTO out{number} {join}" for number, join in enumerate(joins)]
script = "; ".join(inserts)
# What a set joins is not what each of its statements takes of it.
if len(inserts) > 1 and "--count" not in sys.argv:
    script = f"EXECUTE STATEMENT SET BEGIN {script}; END"
began = time.monotonic()
checkpoint = str(folder.parent / f"checkpoint-{time.time_ns()}")
# As Flink at the end of its files: what waits for a partner comes then.
session.run_script(script, once=True, complete=asked == "left", checkpoint=checkpoint)
seconds = time.monotonic() - began
found = session.sql("SHOW QUERIES").collect()
print(json.dumps({"seconds": seconds, "results": sum(each["matches"] for each in found)}))
