"""Who may reach the local Spark that wjoin starts, and what its processes are given of this one."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LOOPBACK = "127.0.0.1"

TOKEN = "WJOIN_WEB_TOKEN"
"""The environment variable whose value is the live page's token, in place of a new one at each start."""

SAFE_WORKERS = {"spark.executorEnv.PYTHONSAFEPATH": "1"}
"""The setting with which workers do not import what lies in the folder where Spark was started."""

_ADDRESS = "SPARK_LOCAL_IP"
"""The environment variable that says where Spark listens; the Spark UI obeys nothing else."""

_SECRETS = (TOKEN,)
_ADDRESSES = ("spark.driver.host", "spark.driver.bindAddress")
_AUTHENTICATE = "spark.authenticate"
# For these masters Spark makes a secret by itself, which no other process has.
_OWN_SECRET = re.compile(r"local(\[.*\])?")


def door_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which a local Spark listens on this machine alone and asks for its secret.

    ``given`` are the settings of the user, who may have named another address there, or by SPARK_LOCAL_IP.
    Nothing of this is set for a Spark with workers on other machines: they must reach it. Its workers import
    from the folder where it was started only where this process does.
    """
    master = given.get("spark.master", "local[*]")
    settings = {}
    if master.startswith("local") and _is_free(given):
        settings.update(dict.fromkeys(_ADDRESSES, LOOPBACK))
    if _OWN_SECRET.fullmatch(master) and _AUTHENTICATE not in given:
        settings[_AUTHENTICATE] = "true"
    if not any(Path(each).resolve() == Path.cwd() for each in sys.path):
        settings.update(SAFE_WORKERS)
    return settings


def door_environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the Java process of such a Spark.

    The UI, too, then listens on this machine alone. Secrets of this process stay here: whoever may run code
    in a worker would read them. Pythons that Java starts for itself have no settings of workers.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    settings = door_settings(given)
    if LOOPBACK in settings.values():
        environment[_ADDRESS] = LOOPBACK
    if SAFE_WORKERS.items() <= settings.items():
        environment["PYTHONSAFEPATH"] = "1"
    return environment


@contextlib.contextmanager
def behind_doors(given: Mapping[str, str]) -> Iterator[None]:
    """Start inside the Java process of a local Spark whose settings are ``given``."""
    before = dict(os.environ)
    after = door_environment(given)
    _change(before, after)
    try:
        yield
    finally:
        _change(after, before)


def _change(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make of one environment another; what others have changed since stays."""
    for name in before.keys() - after.keys():
        del os.environ[name]
    for name, value in after.items():
        if before.get(name) != value:
            os.environ[name] = value


def _is_free(given: Mapping[str, str]) -> bool:
    """Return whether the user leaves to wjoin where Spark listens."""
    return _ADDRESS not in os.environ and not any(name in given for name in _ADDRESSES)
