package wjoin.sql;

import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.collection.immutable.Map$;

/**
 * An error of wjoin, with its text, place and remedy, as Spark's shells and clients expect errors.
 *
 * <p>Spark knows its own errors only, and makes messages of them: this one stands for a syntax error.
 */
public final class Refused extends ParseException {
  private static final long serialVersionUID = 1;
  private static final String SYNTAX_ERROR = "PARSE_SYNTAX_ERROR";
  private static final String STATE = "42000";

  private final String code;
  private final String text;

  Refused(String code, String text) {
    super(
        Option.empty(),
        CurrentOrigin.get(),
        SYNTAX_ERROR,
        Map$.MODULE$.from(CollectionConverters.asScala(Map.of("error", code, "hint", ""))));
    this.code = code;
    this.text = text;
  }

  /** Whether nothing is known of the statement, as nobody has read it. */
  boolean isOfThePlanner() {
    return code.equals(Planner.CODE);
  }

  /** None: it is the statement that is wrong, and shells would print it. */
  @Override
  public synchronized Throwable fillInStackTrace() {
    return this;
  }

  @Override
  public String getMessage() {
    return text;
  }

  @Override
  public String getCondition() {
    return code;
  }

  @Override
  public String getSqlState() {
    return STATE;
  }
}
