package wjoin.lines;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.StructType;

/** Projections whose from_json leaves to Spark's parser only values that are not simple. */
public final class FastRecords {
  /** Return a plan that gives the same rows. */
  public SparkPlan read(SparkPlan rows) {
    if (!(rows instanceof ProjectExec || rows instanceof FilterExec || rows instanceof CollectMetricsExec)) {
      return rows;
    }
    return rows.mapChildren(this::read).mapExpressions(FastRecords::replaced);
  }

  private static Expression replaced(Expression expression) {
    if (expression instanceof SimpleRecords) {
      return expression;
    }
    Expression above = expression.mapChildren(FastRecords::replaced);
    return above instanceof JsonToStructs own
            && own.dataType() instanceof StructType schema
            && FastScans.isUnderstood(schema, own.options(), false)
        ? new SimpleRecords(own)
        : above;
  }
}
