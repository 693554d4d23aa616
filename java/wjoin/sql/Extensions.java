package wjoin.sql;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import wjoin.columns.Extension;

/** The value of spark.sql.extensions with which every session of an application understands W-join SQL. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser(ParserInFront::of);
    new Extension().apply(extensions);
    return BoxedUnit.UNIT;
  }
}
