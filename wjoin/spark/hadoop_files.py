"""Files and folders wherever Spark can reach, through the file systems of its Hadoop."""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError


@dataclass(frozen=True)
class Files:
    """What can be done with files by their paths; raises what Spark raises."""

    jvm: Any
    settings: Any

    @classmethod
    def of(cls, spark: SparkSession) -> "Files":
        """Return the files that a session reaches. Raises WJoinError WJ606 for one of Spark Connect."""
        if not hasattr(spark, "_jsparkSession"):
            raise WJoinError(
                "WJ606",
                "a session of Spark Connect cannot move files",
                help="run it where Spark's driver runs: wjoin checkpoint repartition …",
            )
        session: Any = spark
        return cls(session._jvm, session._jsparkSession.sessionState().newHadoopConf())

    def _at(self, path: str) -> tuple[Any, Any]:
        """Return the file system of a path, and the path as Hadoop has it."""
        found = self.jvm.org.apache.hadoop.fs.Path(path)
        return found.getFileSystem(self.settings), found

    def full(self, path: str) -> str:
        """Return a path with its file system, as Spark writes it down."""
        files, at = self._at(path)
        return str(files.makeQualified(at).toString())

    def local(self, path: str) -> Path | None:
        """Return a path on a file system of this machine, None for any other."""
        files, at = self._at(path)
        found = files.makeQualified(at).toUri()
        return Path(found.getPath()) if found.getScheme() == "file" else None

    def escaped(self, path: str) -> bool:
        """Return whether a path has signs, such as a space, that are others in an address."""
        _, at = self._at(path)
        return bool(at.toUri().toString() != at.toString())

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        files, at = self._at(path)
        return bool(files.exists(at))

    def make_own(self, folder: str) -> None:
        """Make a folder that is not there yet, for this user alone where its file system knows of users."""
        files, at = self._at(folder)
        if not files.exists(at):
            files.mkdirs(at, self.jvm.org.apache.hadoop.fs.permission.FsPermission("700"))

    def names(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder, sorted; none where it is not there."""
        files, at = self._at(folder)
        return sorted(each.getPath().getName() for each in files.listStatus(at)) if files.exists(at) else []

    def written(self, folder: str) -> dict[str, int]:
        """Return the names of what lies in a folder, and when each was written (milliseconds since 1970)."""
        here = self.local(folder)
        if here is not None:
            # Java is asked for each field of each file.
            found = os.scandir(here) if here.is_dir() else ()
            return {each.name: each.stat().st_mtime_ns // 1_000_000 for each in found}
        files, at = self._at(folder)
        listed = files.listStatus(at) if files.exists(at) else []
        return {each.getPath().getName(): int(each.getModificationTime()) for each in listed}

    def numbers(self, folder: str) -> list[int]:
        """Return the names in a folder that are numbers, ascending."""
        return sorted(int(name) for name in self.names(folder) if name.isdecimal())

    def read(self, path: str) -> str:
        """Return the text of a file."""
        files, at = self._at(path)
        with closing(files.open(at)) as stream:
            return str(self.jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))

    def write(self, path: str, text: str) -> None:
        """Write the text of a file."""
        files, at = self._at(path)
        with closing(files.create(at, True)) as stream:
            stream.write(text.encode())

    def copy(self, path: str, to: str) -> None:
        """Copy a file or a whole folder to a path that is not there yet."""
        (files, at), (others, there) = self._at(path), self._at(to)
        others.mkdirs(there.getParent())
        if not self.jvm.org.apache.hadoop.fs.FileUtil.copy(files, at, others, there, False, self.settings):
            raise OSError(f"{path} could not be copied to {to}")

    def rename(self, path: str, to: str) -> None:
        """Move a file or folder to a path that is not there yet, in the same file system."""
        (files, at), (_, there) = self._at(path), self._at(to)
        files.mkdirs(there.getParent())
        if files.exists(there) or not files.rename(at, there):
            raise OSError(f"{path} could not be renamed to {to}")

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder, where it is there."""
        files, at = self._at(path)
        files.delete(at, True)
