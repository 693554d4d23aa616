package wjoin.columns;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.python.MapInArrowExec;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import wjoin.lines.FastRecords;
import wjoin.lines.FastScans;

/**
 * The rule by which the rows that a join reads go to its Python function as blocks of columns.
 *
 * <p>Spark makes rows of the columns that it reads from Parquet, ORC, Delta or Iceberg, and columns of these
 * rows for Python. Where no more than a projection lies between, the columns are copied instead. Other rows
 * are made columns of in larger batches than Spark's.
 */
final class AsColumns extends ColumnarRule {
  /** The names of functions that read blocks; executor/spark/compile.py gives them. */
  private static final Pattern READING_BLOCKS = Pattern.compile("wjoin_\\w+_rows\\d+");

  @Override
  public Rule<SparkPlan> postColumnarTransitions() {
    return new Rule<SparkPlan>() {
      @Override
      public SparkPlan apply(SparkPlan plan) {
        return replaced(plan);
      }
    };
  }

  private static SparkPlan replaced(SparkPlan plan) {
    SparkPlan node = plan.mapChildren(AsColumns::replaced);
    if (node instanceof MapInArrowExec map
        && map.func() instanceof PythonUDF function
        && READING_BLOCKS.matcher(function.name()).matches()
        && !(map.child() instanceof BlocksExec)) {
      SparkPlan blocks = blocks(new FastRecords().read(map.child()));
      return map.withNewChildren(CollectionConverters.asScala(List.of(blocks)).toSeq());
    }
    return node;
  }

  private static SparkPlan blocks(SparkPlan rows) {
    List<NamedExpression> wanted = named(rows.output());
    SparkPlan below = rows;
    // Two at the most: what passes the filter of a stream, and what is read of that.
    while (below instanceof ProjectExec project && projected(project).stream().allMatch(AsColumns::isPlain)) {
      wanted = merged(wanted, projected(project));
      below = project.child();
    }
    if (below instanceof FileSourceScanExec scan && !scan.supportsColumnar()) {
      SparkPlan columnar = new FastScans().columnar(scan);
      return columnar == scan ? BlocksExec.of(named(rows.output()), rows) : BlocksExec.of(wanted, columnar);
    }
    return below instanceof ColumnarToRowExec columns
        ? BlocksExec.of(wanted, columns.child())
        : BlocksExec.of(named(rows.output()), rows);
  }

  private static List<NamedExpression> projected(ProjectExec project) {
    return CollectionConverters.asJava(project.projectList());
  }

  private static List<NamedExpression> named(Seq<Attribute> attributes) {
    return CollectionConverters.asJava(attributes).stream().map(each -> (NamedExpression) each).toList();
  }

  /** Whether an expression can be evaluated anywhere: it has no state, and waits for no other query. */
  private static boolean isPlain(NamedExpression named) {
    Expression expression = (Expression) named;
    return expression.deterministic() && !expression.exists(part -> part instanceof PlanExpression);
  }

  /** Return expressions over the input of a projection, in place of those over its result. */
  private static List<NamedExpression> merged(List<NamedExpression> over, List<NamedExpression> projection) {
    Map<ExprId, NamedExpression> results =
        projection.stream().collect(Collectors.toMap(NamedExpression::exprId, each -> each, (one, same) -> one));
    return over.stream()
        .map(
            each ->
                each instanceof Attribute result
                    ? results.get(result.exprId())
                    : (NamedExpression) substituted((Expression) each, results))
        .toList();
  }

  private static Expression substituted(Expression expression, Map<ExprId, NamedExpression> results) {
    if (expression instanceof Attribute attribute) {
      NamedExpression result = results.get(attribute.exprId());
      return result instanceof Alias alias ? alias.child() : (Expression) result;
    }
    return expression.mapChildren(child -> substituted(child, results));
  }
}
