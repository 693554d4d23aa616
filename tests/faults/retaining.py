"""A process that writes into a sink that keeps results for some seconds: a test kills it, and reads them."""

import sys
import time
from pathlib import Path

import wjoin

SETTINGS = {
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.fileSink.log.compactInterval": "2",
    "spark.sql.streaming.fileSink.log.cleanupDelay": "2s",
    "spark.sql.streaming.minBatchesToRetain": "8",
}
SECONDS, GRACE = 3, 9
STREAM = """
CREATE STREAM numbers (id BIGINT, batch INT, ts TIMESTAMP) USING parquet
OPTIONS (path '{root}/numbers', maxFilesPerTrigger '1') WATERMARK ts DELAY OF 1 DAY
"""
SINK = f"""
CREATE SINK kept USING parquet OPTIONS (path '{{root}}/kept')
RETAIN {SECONDS} SECONDS GRACE {GRACE} SECONDS COMMIT EVERY 200 MILLISECONDS
"""

OTHER = "CREATE SINK other USING json OPTIONS (path '{root}/other') COMMIT EVERY 200 MILLISECONDS"
STATEMENTS = {
    "alone": "INSERT INTO kept SELECT id, batch FROM numbers",
    "set": """EXECUTE STATEMENT SET kept BEGIN
        INSERT INTO other SELECT A.id, B.batch FROM numbers A, numbers B WINDOW = 0 SECONDS WHERE A.id = B.id;
        INSERT INTO kept SELECT A.id, A.batch FROM numbers A, numbers B WINDOW = 0 SECONDS WHERE A.id = B.id;
        END""",
}
"""What is written: each row once."""


def main(root: Path, kind: str) -> None:
    """Write until there is a file ``end``, then what is left."""
    session = wjoin.connect(**SETTINGS)
    session.sql(STREAM.format(root=root))
    session.sql(SINK.format(root=root))
    session.sql(f"SET wjoin.checkpoint = {root}/checkpoints")
    session.sql(OTHER.format(root=root))
    session.sql(STATEMENTS[kind])
    (running,) = session.running
    while not (root / "end").exists() and running.query.isActive:
        time.sleep(0.05)
    running.query.processAllAvailable()
    session.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
