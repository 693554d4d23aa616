"""Files that Spark and Hadoop write on this machine."""

import stat
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from wjoin.spark.java_classes import FILE_SYSTEM

pytestmark = [pytest.mark.long, pytest.mark.sparks]


def file_system(spark: SparkSession) -> Any:
    """Hadoop's file system for paths of this machine."""
    jvm = spark._jvm
    return jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI.create("file:///"), spark._jsparkSession.sessionState().newHadoopConf()
    )


def path(spark: SparkSession, name: Path) -> Any:
    return spark._jvm.org.apache.hadoop.fs.Path(str(name))


def test_local_files_are_written_by_the_class_of_the_jar(spark: SparkSession) -> None:
    """Rests on it: wjoin/spark/java_classes.py. Without it Hadoop starts a process for each permission."""
    assert file_system(spark).getClass().getName() == FILE_SYSTEM


@pytest.mark.parametrize("mode", ["600", "644", "755", "777", "1777"])
def test_permissions_are_those_that_are_asked_for(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    made = tmp_path / "made"
    made.mkdir()
    permission = spark._jvm.org.apache.hadoop.fs.permission.FsPermission(mode)
    file_system(spark).setPermission(path(spark, made), permission)
    assert stat.S_IMODE(made.stat().st_mode) == int(mode, 8)


def test_files_have_checksums_that_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    """As with Hadoop's own class: a checkpoint that a disk has damaged is not read on."""
    written = tmp_path / "written"
    out = file_system(spark).create(path(spark, written), True)
    out.write(bytearray(b"checked"))
    out.close()
    assert (tmp_path / ".written.crc").exists()
    assert stat.S_IMODE(written.stat().st_mode) & stat.S_IRUSR
    written.write_bytes(b"changed")
    opened = file_system(spark).open(path(spark, written))
    with pytest.raises(Py4JJavaError, match=r"[Cc]hecksum"):
        opened.readFully(0, bytearray(7))


def test_renaming_moves_a_file_with_its_checksum(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: every commit of a checkpoint."""
    files = file_system(spark)
    files.create(path(spark, tmp_path / "before"), True).close()
    assert files.rename(path(spark, tmp_path / "before"), path(spark, tmp_path / "after"))
    assert sorted(each.name for each in tmp_path.iterdir()) == [".after.crc", "after"]
