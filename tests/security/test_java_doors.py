"""What a SQL user can call of wjoin's Java: `java_method` reaches every public static method."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.packages import ROOT

ASKS = {"wjoin.sql.Planner.held"}
"""Methods that tell something and do nothing."""


def test_no_public_static_method_acts(spark: SparkSession) -> None:
    modifier = spark._jvm.java.lang.reflect.Modifier
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = set()
    files = sorted((ROOT / "java").rglob("*.java"))
    assert files
    for each in files:
        name = ".".join(each.relative_to(ROOT / "java").with_suffix("").parts)
        own = loader.loadClass(name)
        if modifier.isPublic(own.getModifiers()):
            methods = [*own.getDeclaredMethods()]
            found |= {
                f"{name}.{one.getName()}"
                for one in methods
                if modifier.isStatic(one.getModifiers()) and modifier.isPublic(one.getModifiers())
            }
    assert found == ASKS


def test_nobody_takes_the_request_of_another(spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        spark.sql("SELECT java_method('wjoin.sql.Planner', 'next')").collect()
