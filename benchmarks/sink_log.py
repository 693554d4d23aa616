"""When the files of a sink were committed, as Spark's log of it says."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit


def commits(sink: Path) -> dict[Path, float]:
    """Return the moment at which each file of a sink was committed, from the entries of Spark's log of it."""
    log = sink / "_spark_metadata"
    entries = [path for path in log.glob("*") if path.name.split(".")[0].isdigit()]
    found: dict[Path, float] = {}
    for entry in sorted(entries, key=lambda path: (int(path.name.split(".")[0]), path.name)):
        # An entry is renamed into the log, which changes the time of its inode only.
        moment = entry.stat().st_ctime
        for line in entry.read_text().splitlines()[1:]:
            path = Path(unquote(urlsplit(json.loads(line)["path"]).path))
            found.setdefault(path, moment)
    return found
