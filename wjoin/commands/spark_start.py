"""The embedded Spark of the command line: where it starts, and how a signal stops what it runs."""

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wjoin.commands.arguments import absolute, given_project, pairs

if TYPE_CHECKING:
    from wjoin.session import Session

LOG_TO_TERMINAL = {"spark.log.level": "WARN", "wjoin.log": "stderr"}
"""The settings that --debug stands for."""

_IMPATIENT_SECONDS = 2.0
_PATHS = ("spark.sql.warehouse.dir", "wjoin.checkpoint", "wjoin.log")
"""Settings that are paths of the command line, not of the script."""


def spark_settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the embedded Spark that a command line and its wjoin.toml ask for.

    Raises WJoinError WJ603, WJ619 and WJ620.
    """
    project = given_project(options)
    settings = _whole({"spark.sql.warehouse.dir": "spark-warehouse"}, None)
    if project.file is not None:
        settings |= _whole(project.settings, project.file.parent)
    settings |= _whole(pairs(getattr(options, "set", []), "--set"), None)
    return {**LOG_TO_TERMINAL, **settings} if options.debug else settings


def _whole(settings: dict[str, str], folder: Path | None) -> dict[str, str]:
    """Return settings whose paths are whole ones: those of ``folder``, or of the command line."""
    paths = {name for name in _PATHS if settings.get(name, "stderr") != "stderr"}
    return {name: absolute(value, folder) if name in paths else value for name, value in settings.items()}


@contextlib.contextmanager
def embedded(options: argparse.Namespace) -> "Iterator[Session]":
    """Start the embedded Spark in the script's folder, its log kept off the terminal unless --debug asks."""
    settings = spark_settings(options)
    if getattr(options, "checkpoint", None) is not None:
        options.checkpoint = absolute(options.checkpoint)
    from wjoin.commands.waiting_note import waiting
    from wjoin.connecting import connect

    if files := getattr(options, "udf", []):
        from wjoin.joins.predicates import load

        for file in files:
            load(file)
    with _script_folder(getattr(options, "file", None)):
        with waiting("Starting Spark"):
            session = connect(None, **settings)
        try:
            yield session
        finally:
            session.spark.stop()


@contextlib.contextmanager
def _script_folder(file: str | None) -> Iterator[None]:
    """Work in the folder of a script, where Spark and its workers then start; they import what this does."""
    if file is None:
        yield
        return
    here = Path.cwd()
    found = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    roots = [str(here / each) for each in found if each]
    if Path(__file__).resolve().parents[2] == here:
        roots.append(str(here))
    if roots:
        os.environ["PYTHONPATH"] = os.pathsep.join(roots)
    with contextlib.chdir(Path(file).resolve().parent):
        yield


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a clean stop; a second one that comes at once does not break it."""
    last = -_IMPATIENT_SECONDS

    def stop(number: int, frame: object) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > _IMPATIENT_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
