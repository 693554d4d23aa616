"""Settings, classes and objects of Spark that wjoin names."""

import weakref
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from wjoin.settings.options import ROCKSDB, SESSION_SETTINGS
from wjoin.sources.format_options import SINK_OPTIONS, STREAM_OPTIONS
from wjoin.spark.embedded import embedded_settings

pytestmark = [pytest.mark.long, pytest.mark.core]


def defaults(spark: SparkSession) -> Any:
    """The settings of a session that has set none."""
    return spark._jvm.org.apache.spark.sql.internal.SQLConf()


DEFAULTS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
}

SINCE_4_1 = {"spark.sql.adaptive.streaming.stateless.enabled": "true"}
"""Settings that earlier versions do not read."""

NOT_KNOWN = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"}
"""Settings that Spark reads by their prefix."""

if pyspark.__version__ >= "4.1":
    DEFAULTS |= SINCE_4_1
else:
    NOT_KNOWN |= SINCE_4_1.keys()


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_those_that_prepare_compares_with(spark: SparkSession, name: str) -> None:
    """Rests on it: ``prepare`` and ``require_streaming`` (wjoin/settings/options.py), and MATCH_TIME().

    Else a default would count as a choice of the user, and stay.
    """
    assert defaults(spark).getConfString(name) == DEFAULTS[name]


def test_changelog_checkpoints_are_not_set_by_themselves(spark: SparkSession) -> None:
    """Rests on it: ``prepare`` (wjoin/settings/options.py)."""
    name = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    assert defaults(spark).getConfString(name, "not set") == "not set"
    parser = spark._jvm.org.apache.spark.sql.execution.streaming.state.RocksDBConf
    assert parser.ROCKSDB_SQL_CONF_NAME_PREFIX() == name.rpartition(".changelog")[0]


@pytest.mark.quick
def test_every_setting_of_sql_that_wjoin_sets_is_one_of_sparks(spark: SparkSession) -> None:
    """Rests on it: wjoin/settings/options.py and wjoin/spark/embedded.py.

    Spark takes an unknown name without a word.
    """
    tried = "spark.sql.streaming.checkpointFileManagerClass"
    named = {*SESSION_SETTINGS, *embedded_settings(), *DEFAULTS} - {tried}
    settings = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.internal.SQLConf$")
    known = settings.getField("MODULE$").get(None)
    unknown = [name for name in named if name.startswith("spark.sql.") and not known.containsConfigKey(name)]
    assert set(unknown) == NOT_KNOWN


@pytest.mark.quick
def test_the_state_store_is_the_one_of_rocksdb(spark: SparkSession) -> None:
    """Rests on it: wjoin/settings/options.py names its class."""
    assert spark._jvm.java.lang.Class.forName(ROCKSDB).getName() == ROCKSDB


def test_files_of_a_checkpoint_are_written_as_the_setting_says(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: ``embedded_settings`` (wjoin/spark/embedded.py), which looks for the class in Spark's jar.

    Without it Spark starts a process for each file of a checkpoint.
    """
    wanted = embedded_settings()["spark.sql.streaming.checkpointFileManagerClass"]
    package = wanted.rpartition(".")[0]
    jvm = spark._jvm
    managers = jvm.java.lang.Class.forName(f"{package}.CheckpointFileManager$").getField("MODULE$").get(None)
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    manager = managers.create(jvm.org.apache.hadoop.fs.Path(str(tmp_path)), settings)
    assert manager.getClass().getName() == wanted


def test_a_session_can_be_a_weak_key_and_take_another_sql(spark: SparkSession) -> None:
    """Rests on it: what is declared on a session (wjoin/sources/catalog.py), ``enable`` and ``disable``."""
    assert weakref.ref(spark)() is spark
    assert {spark: 1}[spark] == 1
    assert "sql" not in vars(spark)
    # As ``enable`` does with a method of its own; this one only hands its text back.
    spark.sql = lambda text: text
    assert spark.sql("own") == "own"
    del spark.sql
    assert spark.sql("SELECT 1 AS n").head() == (1,)


SPARKS_OWN = {
    "json": ["org.apache.spark.sql.catalyst.json.JSONOptions"],
    "csv": ["org.apache.spark.sql.catalyst.csv.CSVOptions"],
    "xml": ["org.apache.spark.sql.catalyst.xml.XmlOptions"],
    "text": ["org.apache.spark.sql.execution.datasources.text.TextOptions"],
    "orc": ["org.apache.spark.sql.execution.datasources.orc.OrcOptions"],
    "parquet": [
        "org.apache.spark.sql.execution.datasources.parquet.ParquetOptions",
        "org.apache.spark.sql.execution.datasources.FileIndexOptions",
    ],
}


@pytest.mark.parametrize("provider", SPARKS_OWN)
def test_every_option_that_spark_names_is_known(spark: SparkSession, provider: str) -> None:
    """Rests on it: wjoin/sources/format_options.py, which refuses any other option (WJ603)."""
    jvm = spark._jvm
    named: set[str] = set()
    for name in SPARKS_OWN[provider]:
        options = jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None).getAllOptions()
        named |= set(jvm.scala.jdk.javaapi.CollectionConverters.asJava(options))
    plain = {option.lower() for option in named if "." not in option}
    assert plain
    assert plain <= {option.lower() for option in STREAM_OPTIONS[provider]}
    own = set(plain) if provider != "parquet" else {"compression", "mergeschema"}
    assert own <= {option.lower() for option in SINK_OPTIONS[provider]}
