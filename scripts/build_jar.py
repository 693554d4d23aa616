"""Compile java/ against PySpark's own jars into wjoin/jars/wjoin.jar; the same sources give the same bytes.

Needs a JDK 17 or newer; users never need one, since the jar is in the wheel and in the repository.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "java"
JAR = ROOT / "wjoin" / "jars" / "wjoin.jar"

DIGEST = "META-INF/wjoin-sources.sha256"
"""The file in the jar that tells of which sources it is."""

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_RELEASE = "17"


def source_digest() -> str:
    """Return the SHA-256 of the names and texts of all sources."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.java")):
        for part in (path.relative_to(SOURCES).as_posix().encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def javac() -> str:
    """Return the compiler of JAVA_HOME, or the one on PATH. Raises SystemExit where there is none."""
    for place in (os.environ.get("JAVA_HOME"), None):
        found = shutil.which("javac", path=None if place is None else str(Path(place) / "bin"))
        if found is not None:
            return found
    raise SystemExit("make jar needs a JDK, not only a JRE: set JAVA_HOME to one")


def build(jar: Path) -> None:
    """Write the jar."""
    libraries = Path(pyspark.__file__).parent / "jars"
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        sources = sorted(map(str, SOURCES.rglob("*.java")))
        options = ["--release", _RELEASE, "-Xlint:all,-path", "-Werror", "-g:none", "-proc:none"]
        command = [javac(), *options, "-cp", f"{libraries}/*", "-d", folder, *sources]
        subprocess.run(command, check=True)
        content = {each.relative_to(classes).as_posix(): each for each in classes.rglob("*.class")}
        jar.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n\n")
            _add(archive, DIGEST, source_digest().encode())
            for name in sorted(content):
                _add(archive, name, content[name].read_bytes())


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _FIRST_DAY)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, data)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else JAR)
