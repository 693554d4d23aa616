"""The joins of peers.py by wjoin: python wjoin_join.py FOLDER STATEMENTS [--count]."""

import json
import sys
import time
from pathlib import Path

from statements import statements

import wjoin

STREAM = """CREATE STREAM {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING, ts AS
timestamp_millis(millis)) USING csv OPTIONS (path '{1}/{0}', header 'true', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 1 SECOND"""

folder, count = Path(sys.argv[1]), int(sys.argv[2])
session = wjoin.connect(**{"spark.sql.shuffle.partitions": "2"})
for stream in sorted(each.name for each in folder.iterdir()):
    session.sql(STREAM.format(stream, folder))
inserts = []
for window, select, condition in statements(count):
    session.sql(f"CREATE SINK out{len(inserts)} USING noop")
    join = f"{select} FROM a A, b B, c C WINDOW = {window} SECONDS WHERE {condition}"
    inserts.append(f"INSERT INTO out{len(inserts)} {join}")
script = "; ".join(inserts)
# What a set joins is not what each of its statements takes of it.
if count > 1 and "--count" not in sys.argv:
    script = f"EXECUTE STATEMENT SET BEGIN {script}; END"
began = time.monotonic()
session.run_script(script, once=True, checkpoint=str(folder.parent / f"checkpoint-{time.time_ns()}"))
seconds = time.monotonic() - began
found = session.sql("SHOW QUERIES").collect()
print(json.dumps({"seconds": seconds, "results": sum(each["matches"] for each in found)}))
