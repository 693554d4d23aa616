"""Who may reach the local Spark that wjoin starts, with which secret, and what its workers import."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

LOOPBACK = "127.0.0.1"

TOKEN = "WJOIN_WEB_TOKEN"
"""The environment variable whose value is the live page's token, in place of a new one at each start."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAFE_WORKERS = {"spark.executorEnv.PYTHONSAFEPATH": "1"}
"""The setting with which workers do not import what lies in the folder where Spark was started."""

TOKEN_FOLDERS = "spark.wjoin.tokenFolders"
"""The setting of a Spark that names, with commas, the folders of the files of tokens in statements.

Without it a session of one's own may name any; who sends SQL to the Spark of somebody else, none.
"""

_NAME = r"(?:secret|password|token(?!file)|access[._]?key)[\w.\-]{0,30}['\"`]?\s{0,5}=?\s{0,5}r?"
_LITERALS = "|".join(
    rf"{quote}[^{quote}\\]{{0,4000}}+(?:\\.[^{quote}\\]{{0,4000}}+){{0,99}}+{quote}" for quote in "'\""
)
# What follows tells a literal from what is between two.
_REGEX = rf"""(?is)(?=['"\\])(?<={_NAME})(?:{_LITERALS}|\\["'].{{0,4000}}?\\["'])(?=[\s,;)]|$)"""
REDACTING = {"spark.sql.redaction.string.regex": _REGEX}
"""The setting with which Spark shows and logs statements and plans without secrets.

It is ``wjoin.grammar.shown`` as far as Java's expressions can be: the literals behind names of secrets.
"""

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


def token_folders(spark: "SparkSession") -> tuple[Path, ...] | None:
    """Return in which folders are the files of tokens that statements may name, None for any.

    SQL cannot change it: it is the application's, and no session has one of its own.
    """
    context: Any = getattr(spark, "_sc", None)
    named = None if context is None else context.getConf().get(TOKEN_FOLDERS)
    return None if named is None else tuple(Path(each.strip()) for each in named.split(",") if each.strip())


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
