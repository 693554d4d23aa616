"""The schema of FORMAT AVRO is the one that Spark itself derives of the same columns."""

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from wjoin.sources.avro_schema import avro_schema, nullable

pytestmark = pytest.mark.usefixtures("spark")  # it reads the texts of types

COLUMNS = """
    a TINYINT, b SMALLINT NOT NULL, c INT, d BIGINT NOT NULL, e FLOAT, f DOUBLE, g STRING, h BINARY,
    i BOOLEAN, j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m DECIMAL(1, 0), n DECIMAL(38, 5) NOT NULL,
    o ARRAY<DECIMAL(9, 2)>,
    p MAP<STRING, ARRAY<BIGINT>>, q STRUCT<x: INT NOT NULL, y: STRUCT<z: DECIMAL(5, 1), k: STRING>>,
    r INTERVAL DAY TO SECOND, s INTERVAL YEAR TO MONTH NOT NULL, t ARRAY<STRUCT<u: INT>>
"""


def test_as_spark_derives_it(spark: SparkSession) -> None:
    for columns in (DataType.fromDDL(COLUMNS), nullable(DataType.fromDDL(COLUMNS))):
        assert isinstance(columns, StructType)
        java = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())
        converters = spark._jvm.org.apache.spark.sql.avro.SchemaConverters
        expected = converters.toAvroType(java, False, "topLevelRecord", "").toString()
        assert json.loads(avro_schema(columns)) == json.loads(expected)


def test_nullable_is_nullable_all_through() -> None:
    assert nullable(DataType.fromDDL("a INT NOT NULL, b STRUCT<c: INT NOT NULL>")) == DataType.fromDDL(
        "a INT, b STRUCT<c: INT>"
    )


def test_a_type_that_avro_has_not() -> None:
    columns = DataType.fromDDL("a INT, b MAP<INT, INT>")
    assert isinstance(columns, StructType)
    with pytest.raises(ValueError, match=r"Avro has no type for the column b, map<int,int>"):
        avro_schema(columns)
