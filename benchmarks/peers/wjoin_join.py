"""The join of peers.py by wjoin: python wjoin_join.py FOLDER [--count]."""

import json
import sys
import time
from pathlib import Path

import wjoin

STREAM = """CREATE STREAM {0} (badge BIGINT, other BIGINT, millis BIGINT, payload STRING, ts AS
timestamp_millis(millis)) USING csv OPTIONS (path '{1}/{0}', header 'true', maxFilesPerTrigger '1')
WATERMARK ts DELAY OF INTERVAL 1 SECOND"""
JOIN = """INSERT INTO out SELECT A.badge, A.payload AS a, B.payload AS b, C.payload AS c FROM a A, b B, c C
WINDOW = 5 SECONDS WHERE A.badge = B.badge AND B.badge = C.badge"""

session = wjoin.connect(**{"spark.sql.shuffle.partitions": "2"})
for stream in sorted(each.name for each in Path(sys.argv[1]).iterdir()):
    session.sql(STREAM.format(stream, sys.argv[1]))
session.sql("CREATE SINK out USING noop")
began = time.monotonic()
session.run_script(JOIN, once=True)
seconds = time.monotonic() - began
(query,) = session.sql("SHOW QUERIES").collect()
print(json.dumps({"seconds": seconds, "results": query["matches"]}))
