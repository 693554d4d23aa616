"""A process that writes into sinks that keep results for some seconds: a test kills it, and reads them."""

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
CREATE STREAM {name} (id BIGINT, batch INT, ts TIMESTAMP) USING parquet
OPTIONS (path '{root}/{name}', maxFilesPerTrigger '1') WATERMARK ts DELAY OF 1 DAY
"""
SINK = """
CREATE SINK {name} USING parquet OPTIONS (path '{root}/{name}')
RETAIN {seconds} SECONDS GRACE {grace} SECONDS COMMIT EVERY 200 MILLISECONDS
"""
INSERTS = """
EXECUTE STATEMENT SET both BEGIN
INSERT INTO kept SELECT A.id, A.batch FROM one A, two B WINDOW = 1 SECOND WHERE A.id = B.id;
INSERT INTO odd SELECT A.id, A.batch FROM one A, two B WINDOW = 1 SECOND WHERE A.id = B.id AND A.id % 2 = 1;
END
"""


def declare(session: wjoin.Session, root: Path) -> None:
    """Declare the sinks in a session."""
    for name in ("kept", "odd"):
        session.sql(SINK.format(root=root, name=name, seconds=SECONDS, grace=GRACE))


def main(root: Path) -> None:
    """Write until there is a file ``end``, then what is left."""
    session = wjoin.connect(**SETTINGS)
    for name in ("one", "two"):
        session.sql(STREAM.format(root=root, name=name))
    declare(session, root)
    session.sql(f"SET wjoin.checkpoint = {root}/checkpoints")
    session.sql(INSERTS)
    (running,) = session.running
    while not (root / "end").exists() and running.query.isActive:
        time.sleep(0.05)
    running.query.processAllAvailable()
    session.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
