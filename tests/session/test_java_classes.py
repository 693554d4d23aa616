"""The jar of the embedded Spark."""

import importlib.util
import os
import zipfile

import pytest

from tests.packages import ROOT
from wjoin.spark.extensions import COLUMNS, EXTENSIONS
from wjoin.spark.java_classes import FILE_SYSTEM, JAR, PLUGINS, STORES_CLOSED, class_settings

CLASS_PATH = "spark.driver.extraClassPath"


def test_the_jar_is_built_from_the_sources():
    """``make jar`` builds it anew."""
    spec = importlib.util.spec_from_file_location("build_jar", ROOT / "scripts" / "build_jar.py")
    assert spec is not None and spec.loader is not None
    build_jar = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build_jar)
    with zipfile.ZipFile(JAR) as archive:
        assert archive.read(build_jar.DIGEST).decode() == build_jar.source_digest()
        names = {name for name in archive.namelist() if name.endswith(".class")}
    sources = {path.relative_to(build_jar.SOURCES) for path in build_jar.SOURCES.rglob("*.java")}
    assert {path.with_suffix(".class").as_posix() for path in sources} == {
        name for name in names if "$" not in name
    }
    assert {f"{each.replace('.', '/')}.class" for each in (FILE_SYSTEM, STORES_CLOSED)} <= names
    assert f"{COLUMNS.replace('.', '/')}.class" in names


def test_the_users_class_path_plugins_and_extensions_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wjoin.spark.java_classes._has_classes", lambda: True)
    found = class_settings({CLASS_PATH: "mine.jar", PLUGINS: "Mine", EXTENSIONS: "Own"})
    assert found[CLASS_PATH] == f"mine.jar{os.pathsep}{JAR}"
    assert found[PLUGINS] == f"Mine,{STORES_CLOSED}"
    assert found[EXTENSIONS] == f"Own,{COLUMNS}"


def test_the_users_file_system_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wjoin.spark.java_classes._has_classes", lambda: True)
    assert "spark.hadoop.fs.file.impl" not in class_settings({"spark.hadoop.fs.file.impl": "mine"})


def test_a_java_process_that_started_this_one_is_not_asked_for_the_class(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert class_settings({}) == {}
