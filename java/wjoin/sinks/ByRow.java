package wjoin.sinks;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.QueryExecution;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a query makes of each row of {@code given} columns by itself.
 *
 * @param condition of the rows that it takes; null for all
 */
@SuppressWarnings("serial") // Expressions can be sent, which their interfaces do not say.
record ByRow(Seq<Attribute> given, Expression condition, Seq<Expression> columns) implements Serializable {
  /** Return what a query makes of rows, nothing where it makes other rows of them, or others each time. */
  static Optional<ByRow> of(QueryExecution query, LogicalPlan made) {
    if (query.analyzed().containsPattern(TreePattern.CURRENT_LIKE())) {
      return Optional.empty();
    }
    Option<Tuple3<Seq<NamedExpression>, Seq<Expression>, LogicalPlan>> found =
        PhysicalOperation.unapply(query.optimizedPlan());
    if (found.isEmpty() || !isLeaf(found.get()._3(), made)) {
      return Optional.empty();
    }
    List<Expression> columns = new ArrayList<>();
    for (NamedExpression each : CollectionConverters.asJava(found.get()._1())) {
      columns.add((Expression) each);
    }
    List<Expression> conditions = CollectionConverters.asJava(found.get()._2());
    if (!Stream.concat(columns.stream(), conditions.stream()).allMatch(ByRow::isPlain)) {
      return Optional.empty();
    }
    Expression condition = conditions.stream().reduce(And::new).orElse(null);
    return Optional.of(new ByRow(made.output(), condition, CollectionConverters.asScala(columns).toSeq()));
  }

  private static boolean isLeaf(LogicalPlan plan, LogicalPlan made) {
    return plan.children().isEmpty() && plan.output().equals(made.output());
  }

  private static boolean isPlain(Expression expression) {
    return expression.deterministic() && !expression.exists(ByRow::isOpen);
  }

  /** Whether only Spark's planning gives an expression a value. */
  private static boolean isOpen(Expression expression) {
    return expression instanceof Unevaluable && !(expression instanceof Attribute);
  }
}
