"""A micro-batch by layers: what Spark's driver does, and what its tasks do, from reading to results."""

from collections.abc import Mapping

from wjoin.planner.figures import seconds as in_words

LAYERS = {
    "arriving": "reading, and on the way to Python",
    "packing": "packing for the workers",
    "gathering": "shuffle",
    "keeping": "state",
    "joining": "join",
    "making": "rows of results",
}
"""The layers of the tasks of W-joins by the names of their counters (``executor.report``), in words."""

WHOLE = "triggerExecution"
"""The name that Spark has for a whole micro-batch."""

TASKS = "addBatch"
"""The name that Spark has for the part of a micro-batch in which its tasks run."""


def layer_lines(parts: Mapping[str, int], layers: Mapping[str, int], batches: int) -> list[tuple[str, str]]:
    """Return how long a micro-batch took by layer, each with its time in words.

    ``parts``: milliseconds of all ``batches``, in Spark's words. ``layers``: microseconds of all tasks; tasks
    run at the same time, and one that waits for another counts its waiting.
    """
    if not batches or WHOLE not in parts:
        return []

    def took(milliseconds: float) -> str:
        return in_words(milliseconds / 1000 / batches)

    lines = [
        ("a micro-batch", took(parts[WHOLE])),
        ("  plans, offsets, logs", took(parts[WHOLE] - parts.get(TASKS, 0))),
        ("  tasks", took(parts.get(TASKS, 0))),
    ]
    return [
        *lines,
        *((f"    {LAYERS[name]}", took(layers[name] / 1000)) for name in LAYERS if layers.get(name)),
    ]
