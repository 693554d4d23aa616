"""The micro-batch with which all streams of a query end, as the log of its checkpoint has it."""

import json
import time

from wjoin.spark.hadoop_files import Files

_ENDED = "wjoin.ended"
"""Among the settings of a micro-batch: all streams end with it. Spark takes those that it knows."""


def end_streams(files: Files, folder: str) -> bool:
    """Have the next micro-batch of a checkpoint be one without rows with which all streams end.

    Spark repeats a micro-batch whose offsets are written and which is not committed: so this one runs when
    the query next starts, as often as it takes. Return whether there is one: not where none came before it.
    """
    begun, done = (files.numbers(f"{folder}/{name}") for name in ("offsets", "commits"))
    if not done or begun[-1:] != done[-1:]:
        return ending(files, folder) is not None
    version, body, *offsets = files.read(f"{folder}/offsets/{begun[-1]}").split("\n")
    _, committed, *_ = files.read(f"{folder}/commits/{begun[-1]}").split("\n")
    told = json.loads(body)
    told["batchWatermarkMs"] = json.loads(committed).get("nextBatchWatermarkMs", told["batchWatermarkMs"])
    told["batchTimestampMs"] = max(round(1000 * time.time()), told["batchTimestampMs"])
    told["conf"][_ENDED] = "true"
    unfinished = f"{folder}/wjoin/offsets.unfinished"
    files.write(unfinished, "\n".join([version, json.dumps(told, separators=(",", ":")), *offsets]))
    files.rename(unfinished, f"{folder}/offsets/{begun[-1] + 1}")
    return True


def ending(files: Files, folder: str) -> int | None:
    """Return the micro-batch, not committed, with which all streams end (``end_streams``); None for none."""
    begun, done = (files.numbers(f"{folder}/{name}") for name in ("offsets", "commits"))
    if not begun or begun[-1:] == done[-1:]:
        return None
    _, body, *_ = files.read(f"{folder}/offsets/{begun[-1]}").split("\n")
    return begun[-1] if _ENDED in json.loads(body)["conf"] else None
