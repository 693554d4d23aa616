"""Spark's own shells with W-join SQL in them."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pyspark

from wjoin.sources.token_folders import TOKEN_FOLDERS
from wjoin.spark.doors import SAFE_WORKERS, door_environment, door_settings
from wjoin.spark.extensions import EXTENSIONS, STATEMENTS
from wjoin.spark.java_classes import JAR
from wjoin.spark.redacting import REDACTING

_OPTION = re.compile(r"--?(?P<name>master|remote|conf|c|properties-file)(=(?P<value>.*))?", re.DOTALL)
_PROPERTY = re.compile(r"\s*(?P<name>[^#\s=:]+)[\s=:]+(?P<value>.*)")


def extension_settings() -> dict[str, str]:
    """Return the settings with which any Spark understands W-join SQL, planned by this Python."""
    return {
        "spark.jars": str(JAR),
        EXTENSIONS: STATEMENTS,
        "spark.wjoin.python": sys.executable,
        # Its workers need wjoin as well.
        "spark.pyspark.python": sys.executable,
        **SAFE_WORKERS,
        **REDACTING,
    }


def replace_by(shell: str, arguments: Sequence[str]) -> NoReturn:
    """Go on as a shell of the installed PySpark, with further options of its own.

    A Spark that runs on this machine alone then listens on this machine alone.
    """
    home = Path(pyspark.__file__).parent
    program = str(home / "bin" / shell)
    given = given_settings(arguments, home)
    settings = {**extension_settings(), **door_settings(given)}
    if TOKEN_FOLDERS not in given:
        # Who types here may read what Spark may.
        settings[TOKEN_FOLDERS] = "/"
    options = [f"--conf={name}={value}" for name, value in settings.items()]
    environment = {**door_environment(given), "SPARK_HOME": str(home), "PYTHONSAFEPATH": "1"}
    os.execve(program, [program, *options, *arguments], environment)


def given_settings(arguments: Sequence[str], home: Path) -> Mapping[str, str]:
    """Return the settings that a shell of Spark's is started with: those of its files, then of its options.

    ``home`` is where Spark is. A client of another Spark has the address of that one as its master.
    """
    options = list(_options(arguments))
    named = [value for name, value in options if name == "properties-file"]
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    given = _properties(Path(named[-1]) if named else defaults)
    for name, value in options:
        if name in ("master", "remote"):
            given["spark.master"] = value
        elif name in ("conf", "c"):
            setting, _, of = value.partition("=")
            given[setting] = of
    return given


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a shell of Spark's that have a value, without their hyphens."""
    for place, each in enumerate(arguments):
        if found := _OPTION.fullmatch(each):
            value = found["value"]
            yield found["name"], "".join(arguments[place + 1 : place + 2]) if value is None else value


def _properties(file: Path) -> dict[str, str]:
    """Return the settings in a file of Spark's; none where it is not there: Spark says so."""
    lines = file.read_text().splitlines() if file.is_file() else []
    found = (_PROPERTY.match(each) for each in lines)
    return {each["name"]: each["value"].strip() for each in found if each is not None}
