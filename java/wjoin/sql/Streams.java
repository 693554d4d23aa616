package wjoin.sql;

import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.jdk.javaapi.CollectionConverters;

/** Queries that read a stream, of wjoin and of Spark alone, where all that becomes of them is that rows are shown. */
final class Streams {
  /** Whether this is Spark's SQL shell or its server for JDBC: they show rows, and do nothing else with them. */
  static final boolean SHOWS =
      Pattern.compile("\\.(?:SparkSQLCLIDriver|HiveThriftServer2)\\b")
          .matcher(System.getProperty("sun.java.command", ""))
          .find();

  private static final String CODE = "WJ606";
  private static final String MESSAGE =
      "error[" + CODE + "]: a SELECT over streams never ends, so its rows cannot be shown here"
          + "\nhelp: INSERT INTO a sink starts a query; wjoin shell shows rows as they arrive";

  /** Commands of Spark's that keep the rows of a query. */
  private static final Set<String> KEEP_ROWS =
      Set.of(
          "CacheTableAsSelect",
          "CreateTableAsSelect",
          "CreateVariable",
          "ReplaceTableAsSelect",
          "SetVariable");

  private static final String ENDLESS = "WJ621";
  private static final String NEEDS_ALL =
      "error[" + ENDLESS + "]: the statement needs all rows of a stream, which never ends"
          + "\nhelp: start a query that writes them: INSERT INTO a sink";

  private Streams() {}

  /** Refuse a query that reads a stream where its rows are to be shown. */
  static void requireEnd(boolean streaming) throws Refused {
    if (SHOWS && streaming) {
      throw new Refused(CODE, MESSAGE);
    }
  }

  /** Refuse a statement that Spark has parsed and that shows, or keeps, all rows of a stream that it names. */
  static void requireEnd(SparkSession session, LogicalPlan parsed) throws Refused {
    boolean keeps = KEEP_ROWS.contains(parsed.getClass().getSimpleName());
    boolean other = parsed instanceof Command || parsed instanceof InsertIntoStatement;
    if ((keeps || !other)
        && named(((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog(), parsed)) {
      throw new Refused(keeps ? ENDLESS : CODE, keeps ? NEEDS_ALL : MESSAGE);
    }
  }

  private static boolean named(SessionCatalog catalog, TreeNode<?> node) {
    if (node instanceof UnresolvedRelation relation) {
      return relation.multipartIdentifier().size() == 1
          && catalog.getTempView(relation.multipartIdentifier().head()).exists(LogicalPlan::isStreaming);
    }
    return anyNamed(catalog, node.children())
        || anyNamed(catalog, node.innerChildren())
        || (node instanceof QueryPlan<?> plan && anyNamed(catalog, plan.subqueries()));
  }

  private static boolean anyNamed(SessionCatalog catalog, scala.collection.Iterable<?> nodes) {
    return CollectionConverters.asJava(nodes.toSeq()).stream()
        .anyMatch(each -> each instanceof TreeNode<?> node && named(catalog, node));
  }
}
