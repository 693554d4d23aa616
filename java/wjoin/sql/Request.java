package wjoin.sql;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** What Python is asked: to plan a statement, to run one that changes something, or to let a session go. */
public final class Request {
  private final CompletableFuture<Object> answer = new CompletableFuture<>();
  private final SparkSession session;
  private final String ended;
  private final String text;
  private final Map<String, Object> parameters;
  private final boolean run;
  private final String user = CurrentUserContext.CURRENT_USER().get();

  Request(SparkSession session, String text, Map<String, Object> parameters, boolean run) {
    this(session, null, text, parameters, run);
  }

  private Request(
      SparkSession session, String ended, String text, Map<String, Object> parameters, boolean run) {
    this.session = session;
    this.ended = ended;
    this.text = text;
    this.parameters = parameters;
    this.run = run;
  }

  /** Return the request to let a session go, by its sessionUUID. */
  static Request end(String session) {
    return new Request(null, session, "", Map.of(), false);
  }

  public SparkSession session() {
    return session;
  }

  /** The sessionUUID of a session that has ended, null where something else is asked. */
  public String ended() {
    return ended;
  }

  public String text() {
    return text;
  }

  /** The values of named parameters, by their names: what Python takes as it is, durations, or columns. */
  public Map<String, Object> parameters() {
    return parameters;
  }

  /** Whether the statements of a set come one by one, and then its END. */
  public boolean inPieces() {
    return Streams.SHOWS;
  }

  /** Whether the statement is to be run; else it is to be planned. */
  public boolean run() {
    return run;
  }

  /** The user of JDBC who asks; null where nobody is known. */
  public String user() {
    return user;
  }

  CompletableFuture<Object> answer() {
    return answer;
  }

  /** The statement is Spark's alone. */
  public void leave() {
    answer.complete(null);
  }

  /** The statement is a query, with this plan. */
  public void planned(LogicalPlan plan) {
    answer.complete(plan);
  }

  /** The statement changes something when it is run, and answers rows with this schema. */
  public void command(String schema) {
    answer.complete(new Statement(text, parameters, schema.isEmpty() ? new StructType() : StructType.fromDDL(schema)));
  }

  /** The statement was run, and answers these rows. */
  public void answered(List<Row> rows) {
    answer.complete(rows);
  }

  /** The statement is the beginning of a set, which waits for its END, and answers these rows. */
  public void begun(List<Row> rows) {
    Pieces.keep(Planner.name(session), text);
    answer.complete(rows);
  }

  /** The statement is refused, or has failed. */
  public void refused(String code, String message) {
    answer.completeExceptionally(new Refused(code, message));
  }
}
