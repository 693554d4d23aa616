"""Spark's Python workers are reached through sockets in a folder of this user."""

from collections.abc import Mapping

from wjoin.executor.spark.sockets import socket_folder

FIRST_VERSION = (4, 1)
"""The version of Spark that can first talk to its workers through Unix domain sockets."""


def socket_settings(version: str) -> Mapping[str, str]:
    """Return the settings with which Spark's Python workers do without TCP; none where that cannot be.

    Over TCP every task waits 40 ms for nothing: Spark makes small writes, which its system holds back until
    the ones before are acknowledged, which the other side delays. ``version`` is Spark's.
    """
    major, minor = map(int, version.split(".")[:2])
    if (major, minor) < FIRST_VERSION:
        return {}
    folder = socket_folder()
    if folder is None:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        # Whoever may open the socket of a worker may have it run code: the default is the common /tmp.
        "spark.python.unix.domain.socket.dir": str(folder),
    }
