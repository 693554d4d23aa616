package wjoin.sql;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * Which sessions of Spark belong to which sessions of its servers, for JDBC and of Spark Connect, and their ends.
 *
 * <p>Spark closes none of its own sessions, but the servers tell by events when theirs end. A session of Spark is
 * recognised as a server's by the operation that its thread carries out: the event of its start has both.
 */
final class ServerSessions extends SparkListener {
  private static final String JDBC = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServer";
  private static final String CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnect";

  /** What names an operation in its event, by the class of that. */
  private static final Map<String, String> STARTS =
      Map.of(JDBC + "OperationStart", "groupId", CONNECT + "OperationStarted", "jobTag");

  private static final List<String> ENDS = List.of(JDBC + "SessionClosed", CONNECT + "SessionClosed");

  /** Local properties of the thread that carries an operation out, which have the same name. */
  private static final List<String> OPERATION = List.of("spark.jobGroup.id", "spark.job.tags");

  /** Operations whose sessions are remembered: events come later than the statement that they tell of. */
  private static final int REMEMBERED = 1000;

  private final Consumer<String> ended;

  /** The server's session of each operation. */
  private final Map<String, String> started =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, String> eldest) {
          return size() > REMEMBERED;
        }
      };

  /** The last operations of each session of Spark that plans statements. */
  private final Map<String, List<String>> operations = new HashMap<>();

  private final Map<String, String> servers = new HashMap<>();

  ServerSessions(Consumer<String> ended) {
    this.ended = ended;
  }

  /** Note that the calling thread plans a statement of a session of Spark. */
  synchronized void plans(String session, SparkContext context) {
    List<String> names =
        OPERATION.stream()
            .map(context::getLocalProperty)
            .flatMap(each -> each == null ? Stream.of() : Arrays.stream(each.split(",")))
            .toList();
    operations.put(session, names);
    names.forEach(name -> belongs(session, started.get(name)));
  }

  private void belongs(String session, String server) {
    if (server != null) {
      servers.put(session, server);
    }
  }

  @Override
  public synchronized void onOtherEvent(SparkListenerEvent event) {
    String kind = event.getClass().getName();
    String named = STARTS.get(kind);
    if (named != null) {
      String operation = told(event, named);
      String server = told(event, "sessionId");
      started.put(operation, server);
      operations.forEach(
          (session, names) -> belongs(session, names.contains(operation) ? server : null));
    } else if (ENDS.contains(kind)) {
      end(told(event, "sessionId"));
    }
  }

  private void end(String server) {
    List<String> gone =
        servers.entrySet().stream()
            .filter(each -> each.getValue().equals(server))
            .map(Map.Entry::getKey)
            .toList();
    for (String session : gone) {
      servers.remove(session);
      operations.remove(session);
      ended.accept(session);
    }
    started.values().removeIf(server::equals);
  }

  /** Return a field of an event: its class is in a jar that Spark may have been started without. */
  private static String told(SparkListenerEvent event, String field) {
    try {
      return String.valueOf(event.getClass().getMethod(field).invoke(event));
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    }
  }
}
