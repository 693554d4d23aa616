package wjoin.sinks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionWithRandomSeed;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Option;
import scala.PartialFunction;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * A query over rows that come later, which Spark has analysed once.
 *
 * <p>To analyse a statement takes as long as to write a small micro-batch.
 */
final class Prepared {
  private final LogicalPlan plan;
  private final Seq<Attribute> shape;

  /** Takes a query over a relation without rows, {@code shape}, in whose place the rows come. */
  Prepared(LogicalPlan plan, Seq<Attribute> shape) {
    this.plan = plan;
    this.shape = shape;
    if (plan.collectLeaves().exists(this::isShape)) {
      return;
    }
    throw new IllegalArgumentException("the query does not read the relation");
  }

  /** Return what the query makes of rows. */
  Dataset<Row> over(Dataset<Row> rows) {
    org.apache.spark.sql.classic.Dataset<Row> given =
        (org.apache.spark.sql.classic.Dataset<Row>) rows;
    LogicalPlan under = renamed(given.logicalPlan());
    LogicalPlan placed = plan.transformUp(replacing(under));
    LogicalPlan seeded = placed.transformAllExpressions(SEEDED);
    return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(given.sparkSession(), seeded);
  }

  private boolean isShape(Object plan) {
    return plan instanceof LocalRelation relation && relation.output().equals(shape);
  }

  /** Return rows under the identities of the columns that they stand for. */
  private LogicalPlan renamed(LogicalPlan rows) {
    List<NamedExpression> columns = new ArrayList<>();
    for (int place = 0; place < shape.size(); place++) {
      Attribute own = shape.apply(place);
      Expression given = rows.output().apply(place);
      Seq<String> none = CollectionConverters.asScala(List.<String>of()).toSeq();
      columns.add(new Alias(given, own.name(), own.exprId(), none, Option.empty(), none));
    }
    return new Project(CollectionConverters.asScala(columns).toSeq(), rows);
  }

  private PartialFunction<LogicalPlan, LogicalPlan> replacing(LogicalPlan rows) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(LogicalPlan plan) {
        return isShape(plan);
      }

      @Override
      public LogicalPlan apply(LogicalPlan plan) {
        return rows;
      }
    };
  }

  /** Each micro-batch has random numbers of its own, as in any streaming query. */
  private static final PartialFunction<Expression, Expression> SEEDED =
      new AbstractPartialFunction<>() {
        @Override
        public boolean isDefinedAt(Expression expression) {
          return expression instanceof ExpressionWithRandomSeed;
        }

        @Override
        public Expression apply(Expression expression) {
          long seed = ThreadLocalRandom.current().nextLong();
          return ((ExpressionWithRandomSeed) expression).withNewSeed(seed);
        }
      };
}
