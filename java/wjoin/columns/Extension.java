package wjoin.columns;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** A value of spark.sql.extensions with which the rows of a join go to Python as columns. */
public final class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(session -> new AsColumns());
    return BoxedUnit.UNIT;
  }
}
