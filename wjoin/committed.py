"""The files of a sink that a query has committed, for readers that know nothing of Spark."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ENTRY = re.compile(r"(\d+)(\.compact)?")


def committed_files(folder: str | Path) -> list[str]:
    """Return the files of a local sink's folder whose micro-batches are complete, oldest first.

    Spark's file sink names in ``_spark_metadata`` what each micro-batch wrote, when it is complete:
    a file ``N`` for micro-batch N, or ``N.compact`` for all up to N. What else lies in the folder is
    being written, or was left by a crash. The list is empty while nothing is committed.
    """
    log = Path(folder) / "_spark_metadata"
    found = [(each, _ENTRY.fullmatch(each.name)) for each in log.iterdir()] if log.is_dir() else []
    entries = sorted((int(name[1]), name[2] is not None, path) for path, name in found if name)
    first = max((number for number, compact, _ in entries if compact), default=0)
    files: dict[str, None] = {}
    for number, _, path in entries:
        for line in path.read_text("utf-8").splitlines()[1:] if number >= first else ():
            entry = json.loads(line)
            name = unquote(urlsplit(entry["path"]).path)
            if entry["action"] == "add":
                files[name] = None
            else:
                files.pop(name, None)
    return list(files)
