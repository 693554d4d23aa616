package wjoin.sql;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.NamedParameterContext;
import org.apache.spark.sql.classic.ExpressionUtils;
import scala.jdk.javaapi.CollectionConverters;

/** The values of a statement's named parameters. */
final class Parameters {
  private Parameters() {}

  /** Return them by their names: of other than named ones Python tells that it does not take them. */
  static Map<String, Object> of(Object context) {
    Map<String, Object> values = new TreeMap<>();
    if (context instanceof NamedParameterContext) {
      CollectionConverters.asJava(((NamedParameterContext) context).params())
          .forEach((name, expression) -> values.put(name, value(expression)));
    }
    return values;
  }

  /** Return a value that Python knows, a duration, or for all else a column that has it. */
  private static Object value(Expression expression) {
    if (expression.foldable() && expression.resolved()) {
      Object found = CatalystTypeConverters.convertToScala(expression.eval(null), expression.dataType());
      if (found instanceof String
          || found instanceof Number
          || found instanceof Boolean
          || found instanceof Duration) {
        return found;
      }
    }
    return ExpressionUtils.column(expression);
  }
}
