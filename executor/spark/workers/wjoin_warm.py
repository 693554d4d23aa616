"""A Python with everything imported, of which Spark's Pythons on this machine are forked.

It is run as ``python -m wjoin_warm LISTENER MODULE...``: the number of a listening Unix socket, and what to
import. ``sitecustomize``, in this folder, asks it for a fork in place of the process that Spark has started.
It ends, with all that it has forked, when its standard input does.
"""

import ast
import contextlib
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

_TAKEN = b"y"
_STREAMS = 3
_REQUEST_SECONDS = 10.0
# Python and its libraries read these when they start.
_READ_AT_START = ("PYTHONHASHSEED", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class ForkRequest:
    """A process that is asked for: ``python -m MODULE ARGUMENT...`` with an environment, in a folder."""

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str

    def fits(self) -> bool:
        """Return whether a fork of this process is what a new one would be."""
        own = {name: os.environ.get(name) for name in _READ_AT_START}
        return all(self.environment.get(name, value) == value for name, value in own.items())


def main() -> None:
    """Import what workers need, and fork until standard input ends."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    # A terminal tells all processes of an interrupt; Java decides what it means for these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    daemon = _daemon()
    sys.path[:] = daemon.installed_first(sys.path)
    daemon.preload(sys.argv[2:])
    gc.collect()
    gc.freeze()
    WarmServer(listener).serve()


class WarmServer:
    """Takes requests, and watches over what it has forked for whom."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._forked: dict[int, socket.socket] = {}
        """The connections to those who have asked, by the process that each got."""
        self._ended, ended = socket.socketpair()
        for each in (self._ended, ended):
            each.setblocking(False)
        self._wake = ended
        self._selector = selectors.DefaultSelector()
        for watched in (sys.stdin, listener, self._ended):
            self._selector.register(watched, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(ended.fileno())

    def serve(self) -> None:
        """Fork what is asked for, until standard input ends; then end it all."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    for process in self._forked:
                        _end(process)
                    return
                if key.fileobj is self._listener:
                    self._take()
                elif key.fileobj is self._ended:
                    self._reap()
                else:
                    # Whoever has asked has ended: Spark has stopped it.
                    _end(key.data)
                    self._selector.unregister(key.fileobj)

    def _take(self) -> None:
        """Read a request, and fork what it asks for."""
        connection, _ = self._listener.accept()
        connection.settimeout(_REQUEST_SECONDS)
        try:
            request, streams = _read(connection)
        except (OSError, ValueError, SyntaxError) as error:
            print(f"wjoin: a request that is none: {error!r}", file=sys.stderr)
            connection.close()
            return
        if not request.fits():
            connection.close()
        elif process := os.fork():
            self._forked[process] = connection
            self._selector.register(connection, selectors.EVENT_READ, process)
            with contextlib.suppress(OSError):
                connection.sendall(_TAKEN)
        else:
            connection.close()
            self._become(request, streams)
        for stream in streams:
            os.close(stream)

    def _become(self, request: ForkRequest, streams: Sequence[int]) -> None:
        """Be what was asked for, and end; in the forked process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listener, self._ended, self._wake, *self._forked.values()):
            each.close()
        os._exit(_ran(request, streams))

    def _reap(self) -> None:
        """Tell those who wait for forked processes how these have ended."""
        with contextlib.suppress(BlockingIOError):
            while self._ended.recv(1024):
                pass
        while self._forked:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            connection = self._forked.pop(process)
            if connection in {key.fileobj for key in self._selector.get_map().values()}:
                self._selector.unregister(connection)
            with connection, contextlib.suppress(OSError):
                connection.sendall(bytes([max(0, os.waitstatus_to_exitcode(status)) or bool(status)]))


def _read(connection: socket.socket) -> tuple[ForkRequest, Sequence[int]]:
    """Read a request, and the standard streams that come with it."""
    header, streams, _, _ = socket.recv_fds(connection, 8, _STREAMS)
    size, data = int.from_bytes(header), b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ValueError("it ends too soon")
        data += more
    module, arguments, environment, folder = ast.literal_eval(data.decode())
    return ForkRequest(module, arguments, environment, folder), streams


def _ran(request: ForkRequest, streams: Sequence[int]) -> int:
    """Run a module as a process of its own would; return the status with which that ends."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    if not request.environment.get("PYTHONSAFEPATH"):
        sys.path.insert(0, request.folder)
    named = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [each for each in named if each and each not in sys.path]
    sys.path[:] = _daemon().installed_first(sys.path)
    sys.argv[:] = [request.module, *request.arguments]
    # It runs as if it were the first, and is imported anew where another module needs it.
    sys.modules.pop(request.module, None)
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 (its end is the end of the process, whatever it is)
        traceback.print_exc()
        return 1
    finally:
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                written.flush()
    return 0


def _daemon() -> ModuleType:
    """Return the module of the workers' daemon by its name on their path: there may be no wjoin."""
    return importlib.import_module("wjoin_daemon")


def _end(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)


if __name__ == "__main__":
    main()
