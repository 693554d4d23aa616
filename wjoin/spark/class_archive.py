"""Spark's classes as Java has read and checked them once, for every later start.

The Java of a new process reads some 25,000 classes from Spark's jars. It can map a file that another one has
written of them (Class Data Sharing, JEP 350), and leaves one alone that is of another Java or of other jars.
``wjoin prepare`` has one written.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

from wjoin.spark.java_classes import JAR

SUFFIX = ".jsa"

_BEGIN = "classes-"
_MONTH = 30 * 86_400

# Java would say on standard output what it leaves out, or does not take over.
_QUIET = "-Xlog:cds*=off"


def reading_options() -> str:
    """Return the options with which Java starts from its archive; none where there is none."""
    name = archive_name()
    for file in archive_folder().glob(f"{name}-*{SUFFIX}") if name else ():
        found = file.stat()
        # Java would not survive one that is shorter than it was.
        if found.st_uid == os.getuid() and file.stem == f"{name}-{found.st_size}":
            with contextlib.suppress(OSError):
                # By its time it is known which ones are in use.
                os.utime(file)
            return f"-XX:SharedArchiveFile={file} {_QUIET}"
    return ""


def writing_options(file: Path) -> str:
    """Return the options with which Java writes an archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={file} {_QUIET}"


def remove_unused() -> None:
    """Remove the archives from which no Spark has started for a month."""
    for file in archive_folder().glob(f"{_BEGIN}*{SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > _MONTH:
                file.unlink()


def archive_folder() -> Path:
    """Return the folder of archives, in the user's folder of caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "wjoin"


def archive_name() -> str | None:
    """Return how names of archives for this machine's Java and this PySpark begin; the size comes next.

    None where there is no Java, and where Spark would take the path for more than one option.
    """
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "")
    if not java.is_file() or len(str(archive_folder()).split()) > 1:
        return None
    identity = hashlib.sha256()
    for file in _read_files(java.resolve()):
        found = file.stat()
        identity.update(f"{file} {found.st_size} {found.st_mtime_ns}\n".encode())
    return f"{_BEGIN}{identity.hexdigest()[:16]}"


def _read_files(java: Path) -> Iterator[Path]:
    """Yield the files that what Java reads depends on."""
    yield java
    yield from java.parent.parent.glob("release")
    yield from sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    if JAR.is_file():
        yield JAR
