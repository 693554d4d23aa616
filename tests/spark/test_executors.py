"""What wjoin takes for granted of how Spark tells of executors, and is asked for them."""

import pytest
from pyspark.sql import SparkSession

from wjoin.measured.load import Following
from wjoin.planner.cost.scaling import Scaling
from wjoin.planner.cost.shed_share import Thresholds
from wjoin.spark.executors import Executors, allocates_itself, ask_for, executors

pytestmark = [pytest.mark.long, pytest.mark.sparks]


def test_spark_tells_the_time_of_tasks_and_takes_wishes(spark: SparkSession) -> None:
    """Rests on it: ``executors`` and ``ask_for`` (wjoin/spark/executors.py), on a cluster."""
    spark.range(10, numPartitions=2).collect()
    context = spark.sparkContext._jsc.sc()
    (driver,) = (context.statusStore().executorList(False).apply(place) for place in range(1))
    assert (driver.id(), driver.isActive(), driver.totalCores() > 0) == ("driver", True, True)
    assert driver.totalDuration() >= 0
    assert executors(spark) is None and not allocates_itself(spark)
    # A local Spark refuses, and has no other way to do it.
    assert not ask_for(spark, Executors((), 1, 0.0), 2)


def test_where_there_are_no_executors_a_query_says_so(spark: SparkSession) -> None:
    with pytest.warns(UserWarning, match="WJ822.*this Spark has no executors that can be asked for"):
        assert not Following(spark).begin(Scaling(1, 2), Thresholds())
