package wjoin.sql;

import java.util.Map;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.misc.Pair;
import org.apache.spark.sql.catalyst.parser.ParseException;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

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
        SYNTAX_ERROR,
        Map$.MODULE$.from(CollectionConverters.asScala(Map.of("error", code, "hint", ""))),
        placed(text));
    this.code = code;
    this.text = text;
  }

  /** A place as Spark's parser has it: the one constructor that every Spark 4 has asks for it. */
  private static ParserRuleContext placed(String text) {
    CommonToken token = new CommonToken(new Pair<>(null, CharStreams.fromString(text)), 0, 0, 0, text.length() - 1);
    ParserRuleContext context = new ParserRuleContext();
    context.start = token;
    context.stop = token;
    return context;
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
