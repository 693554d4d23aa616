"""Named places at which a test may kill the process; nothing happens unless one is armed.

``WJOIN_FAULT=name:probability`` arms a place.
"""

import os
import random
import signal

_ARMED = os.environ.get("WJOIN_FAULT", "")


def fault_point(name: str) -> None:
    """Kill this process if ``name`` is armed and chance says so."""
    if _ARMED:
        armed, _, probability = _ARMED.partition(":")
        if armed == name and random.random() < float(probability or 1):
            os.kill(os.getpid(), signal.SIGKILL)
