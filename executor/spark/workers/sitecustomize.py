"""What a Python does first that has this folder on its path: it lets ``wjoin_warm`` do what Spark wants done.

Spark starts a Python of its own at each start of a query, and waits ten seconds until it has read all of
PySpark, from an archive that has nothing compiled. A fork of a process that has read it is there at once.
Nothing is imported here that this needs not: pathlib takes longer than all the rest.
"""

import importlib.machinery
import importlib.util
import os
import sys

SOCKET = "WJOIN_WARM"
"""The variable of the environment that names the socket of ``wjoin_warm``."""

_DAEMON = "wjoin_daemon"
_REACHED_BY = ("PYTHON_WORKER_FACTORY_SOCK_PATH", "PYTHON_WORKER_FACTORY_PORT")


def main() -> None:
    """Hand this process's work over, or go on as if this module were not there."""
    path, arguments = os.environ.get(SOCKET), sys.orig_argv[1:]
    if path is not None and arguments[:1] == ["-m"] and _is_sparks(arguments[1]):
        status = _handed_over(path, arguments[1], arguments[2:])
        if status is not None:
            os._exit(status)
    _customize()


def _is_sparks(module: str) -> bool:
    """Return whether Spark starts a module as its daemon, or as a worker that is to call it back."""
    alone = module.startswith("pyspark.") and any(name in os.environ for name in _REACHED_BY)
    return alone or module == _DAEMON


def _handed_over(path: str, module: str, arguments: list[str]) -> int | None:
    """Wait for a fork that runs a module; return its status, None where there is none."""
    import socket

    with socket.socket(socket.AF_UNIX) as warm:
        try:
            warm.connect(path)
            said = repr((module, arguments, dict(os.environ), os.getcwd())).encode()  # noqa: PTH109 (pathlib is slow)
            socket.send_fds(warm, [len(said).to_bytes(8)], [0, 1, 2])
            warm.sendall(said)
            if not warm.recv(1):
                return None
        except OSError:
            return None
        status = warm.recv(1)
    return status[0] if status else 1


def _customize() -> None:
    """Do what the module of this name does that this one hides."""
    here = os.path.dirname(__file__)  # noqa: PTH120 (pathlib is slow to import)
    others = [each for each in sys.path if each.rstrip(os.sep) != here]
    found = importlib.machinery.PathFinder.find_spec(__name__, others)
    if found is not None and found.loader is not None:
        module = importlib.util.module_from_spec(found)
        sys.modules[__name__] = module
        found.loader.exec_module(module)


main()
