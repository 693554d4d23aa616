package wjoin.sql;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/**
 * The queries that INSERT INTO has started: those that still run when their application ends are told.
 *
 * <p>Spark's events come one after another: a query whose end comes after that of the application has ended with it.
 */
final class RunningQueries extends SparkListener {
  private static final String WARNING = "\nwarning[WJ812]: the application has ended, and its running queries with it: ";
  private static final String HELP =
      "\nhelp: run the statements again: they resume from their checkpoints; or run a script with wjoin run";

  private static final String WITHOUT_END =
      "\nerror[WJ106]: a statement set has no END, so nothing of it has been started"
          + "\nhelp: write EXECUTE STATEMENT SET … BEGIN INSERT INTO …; INSERT INTO …; END";

  /** Their names, by the numbers of their runs. */
  private final Map<String, String> names = new LinkedHashMap<>();

  synchronized void add(String run, String name) {
    names.put(run, name);
  }

  synchronized void remove(String run) {
    names.remove(run);
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof StreamingQueryListener.QueryTerminatedEvent ended) {
      remove(ended.runId().toString());
    }
  }

  @Override
  public synchronized void onApplicationEnd(SparkListenerApplicationEnd end) {
    if (Pieces.any()) {
      System.err.println(WITHOUT_END);
    }
    if (!names.isEmpty()) {
      System.err.println(WARNING + String.join(", ", names.values()) + HELP);
    }
  }
}
