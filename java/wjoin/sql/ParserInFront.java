package wjoin.sql;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Spark's parser, but for statements of W-join SQL.
 *
 * <p>A proxy, since the methods of ParserInterface differ between versions of Spark.
 */
final class ParserInFront implements InvocationHandler {
  private static final Set<String> STATEMENTS =
      Set.of("parsePlan", "parsePlanWithParameters", "parseQuery");

  /** Words of which statements of wjoin have one; Python tells those of Spark's that have one, too. */
  private static final Pattern WORDS =
      Pattern.compile(
          "\\b(?:D?WINDOW|STREAMS?|SINKS?|PREDICATES|QUERY|QUERIES|STATEMENT\\s+SET|MATCH_CONDITION|WITHIN|EXPLAIN\\s+DELAY)\\b|\\bPATH\\s*(?:\\(|--|/\\*)|\\bwjoin\\.",
          Pattern.CASE_INSENSITIVE);

  /** Calls of wjoin's own predicates: Python tells Spark of them. */
  private static final Pattern PREDICATES =
      Pattern.compile(
          "\\b(?:cosine_similarity|edit_distance|euclidean_distance|haversine_km|jaccard_similarity|rgb_similarity|same_set|token_ratio)\\s*\\(",
          Pattern.CASE_INSENSITIVE);

  /** Where a stream or a sink has been declared, there is a planner; these statements may be about one. */
  private static final Pattern DECLARED =
      Pattern.compile(
          "\\b(?:ALTER|ANALYZE|CACHE|COMMENT|DELETE|DESC|DESCRIBE|DROP|INSERT|LOAD|MERGE|REPAIR|SHOW\\s+(?:CREATE|PARTITIONS)|TRUNCATE|UPDATE|VIEW)\\b",
          Pattern.CASE_INSENSITIVE);

  /** Joins: of declared streams they may be ours by their conditions. */
  private static final Pattern JOINS =
      Pattern.compile("\\bJOIN\\b|\\bFROM\\b[^;]*,", Pattern.CASE_INSENSITIVE);

  private final SparkSession session;
  private final ParserInterface spark;

  private ParserInFront(SparkSession session, ParserInterface spark) {
    this.session = session;
    this.spark = spark;
  }

  static ParserInterface of(SparkSession session, ParserInterface spark) {
    Planner.hear(session.sparkContext());
    return (ParserInterface)
        Proxy.newProxyInstance(
            ParserInFront.class.getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            new ParserInFront(session, spark));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean statement = STATEMENTS.contains(method.getName());
    Refused refused = null;
    if (statement && mayBeOurs((String) arguments[0])) {
      try {
        LogicalPlan plan = Planner.plan(session, (String) arguments[0], parameters(arguments));
        if (plan != null) {
          Streams.requireEnd(plan.isStreaming());
          return plan;
        }
      } catch (Refused reason) {
        if (!reason.isOfThePlanner()) {
          Pieces.end(Planner.name(session));
          throw reason;
        }
        // The statement may be Spark's.
        refused = reason;
      }
    }
    Object parsed;
    try {
      parsed = method.invoke(spark, arguments);
    } catch (InvocationTargetException failed) {
      throw refused == null ? failed.getCause() : refused;
    }
    if (Streams.SHOWS && statement && Planner.isRunning() && !Planner.isInside(session)) {
      Streams.requireEnd(session, (LogicalPlan) parsed);
    }
    return parsed;
  }

  /** Parameters come with a text since Spark 4.3; older versions bind them in the plan that they get. */
  private static Map<String, Object> parameters(Object[] arguments) {
    return arguments.length > 1 ? Parameters.of(arguments[1]) : Map.of();
  }

  private boolean mayBeOurs(String text) {
    return WORDS.matcher(text).find()
        || Pieces.begun(Planner.name(session))
        || PREDICATES.matcher(text).find()
        || (Planner.isRunning()
            && (DECLARED.matcher(text).find() || JOINS.matcher(text).find()));
  }
}
