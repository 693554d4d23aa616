"""Workers that are reached over TCP: what Spark writes to them is acknowledged at once.

Spark makes small writes. Its system holds each back until the one before is acknowledged, which the worker's
system puts off by 40 ms, unless it is told after every read that it shall not.
"""

import io
import os
import socket
from collections.abc import Callable
from typing import IO, Any, Protocol

_OPTION = getattr(socket, "TCP_QUICKACK", None)
_BUFFER_BYTES = 1 << 16


class WorkerModule(Protocol):
    """A module of PySpark that has the work of one task in ``main(infile, outfile)``."""

    main: Callable[[Any, Any], Any]


def acknowledge_at_once(module: WorkerModule) -> None:
    """Have the ``main`` of a worker's module read through ``acknowledging``."""
    original = module.main

    def main(infile: io.BufferedReader, outfile: IO[bytes]) -> Any:
        return original(acknowledging(infile), outfile)

    module.main = main


def acknowledging(infile: io.BufferedReader) -> io.BufferedReader:
    """Return a file that reads from one over a socket, and acknowledges what it reads.

    It is ``infile`` where that is no TCP connection, or this system cannot do so.
    """
    connection = socket.socket(fileno=os.dup(infile.fileno()))
    if _OPTION is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        connection.close()
        return infile
    return io.BufferedReader(_Acknowledging(infile, connection, _OPTION), _BUFFER_BYTES)


class _Acknowledging(io.RawIOBase):
    """Reads from a buffered file, which may have bytes already; then asks for the acknowledgement."""

    def __init__(self, source: io.BufferedReader, connection: socket.socket, option: int) -> None:
        super().__init__()
        self._source = source
        self._connection = connection
        self._option = option

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._source.fileno()

    def readinto(self, buffer: Any, /) -> int:
        # Not readinto1(), which waits for more where what it has does not fill a large buffer.
        read = self._source.read1(min(len(buffer), _BUFFER_BYTES))
        self._connection.setsockopt(socket.IPPROTO_TCP, self._option, 1)
        buffer[: len(read)] = read
        return len(read)

    def close(self) -> None:
        self._connection.close()
        super().close()
