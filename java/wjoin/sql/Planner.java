package wjoin.sql;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.ClientServer;
import py4j.Gateway;
import py4j.GatewayServer;

/**
 * The process in Python that plans the statements of wjoin, one for an application.
 *
 * <p>It is a client of Spark's own server for Python, on loopback and with a secret, and asks here for what
 * there is to do. It ends when its standard input does, which is with this process.
 */
public final class Planner {
  /** A local property of the threads that work for Python: their statements are Spark's. */
  public static final String INSIDE = "wjoin.inside";

  private static final String[] PYTHON_SETTINGS = {
    "spark.wjoin.python", "spark.pyspark.driver.python", "spark.pyspark.python"
  };
  private static final String[] PYTHON_VARIABLES = {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"};

  /** The code of the error that there is no planner. */
  static final String CODE = "WJ615";

  private static final String REMEDY =
      "\nhelp: set spark.wjoin.python to a Python that has the jar's version of wjoin";
  private static final long POLL_MILLISECONDS = 100;
  private static final long IDLE_SECONDS = 10;
  private static final long START_SECONDS = 60;

  /** After how long without a sign of life a process is ended: it asks again as soon as it has an answer. */
  private static final long SILENT_SECONDS = 20;

  /** Spark's setting of what is not shown of statements and plans; wjoin/spark/doors.py has the same. */
  private static final String REDACTION = "spark.sql.redaction.string.regex";

  private static final String SECRETS =
      "(?is)(?=['\"\\\\])(?<=(?:secret|password|token(?!file)|access[._]?key)[\\w.\\-]{0,30}['"
          + "\\\"`]?\\s{0,5}=?\\s{0,5}r?)(?:'[^'\\\\]{0,4000}+(?:\\\\.[^'\\\\]{0,4000}+){0,99}+'|\"[^"
          + "\"\\\\]{0,4000}+(?:\\\\.[^\"\\\\]{0,4000}+){0,99}+\"|\\\\[\"'].{0,4000}?\\\\[\"'])(?=["
          + "\\s,;)]|$)";

  private static final Logger LOG = LoggerFactory.getLogger(Planner.class);

  private static Planner running;
  private static SparkContext listened;
  private static ServerSessions servers;
  private static RunningQueries queries;
  private static volatile int held;

  private final BlockingQueue<Request> waiting = new LinkedBlockingQueue<>();
  private final String python;
  private final Process process;
  private volatile boolean attached;
  private volatile boolean asking;
  private volatile long asked = System.nanoTime();

  private Planner(SparkContext context) throws Refused {
    python = python(context.getConf());
    try {
      Py4JServer server = new Py4JServer(context.getConf());
      start(server);
      gateway(server).putObject(Work.NAME, new Work(this));
      // -P: not what lies in the folder where somebody has started Spark.
      ProcessBuilder builder = new ProcessBuilder(python, "-P", "-m", "wjoin.bridge");
      builder.environment().put("PYSPARK_GATEWAY_PORT", Integer.toString(server.getListeningPort()));
      builder.environment().put("PYSPARK_GATEWAY_SECRET", server.secret());
      builder.environment().put("PYSPARK_PYTHON", python);
      builder.redirectOutput(ProcessBuilder.Redirect.DISCARD);
      builder.redirectError(ProcessBuilder.Redirect.INHERIT);
      process = builder.start();
      context.addSparkListener(
          new SparkListener() {
            @Override
            public void onApplicationEnd(SparkListenerApplicationEnd end) {
              process.destroyForcibly();
            }
          });
    } catch (IOException failed) {
      throw refused("there is no Python at " + python);
    }
  }

  /** Start a server whose threads do not keep this process from ending: they are daemons as their parent is. */
  private static void start(Py4JServer server) {
    Thread starting = new Thread(server::start, "wjoin-planner");
    starting.setDaemon(true);
    starting.start();
    try {
      starting.join();
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private static Gateway gateway(Py4JServer server) {
    return server.server() instanceof ClientServer both
        ? both.getJavaServer().getGateway()
        : ((GatewayServer) server.server()).getGateway();
  }

  /** Return the plan of a statement, or null where it is Spark's alone. */
  static LogicalPlan plan(SparkSession session, String text, Map<String, Object> parameters)
      throws Refused {
    if (isInside(session)) {
      return null;
    }
    Planner planner = started(session.sparkContext());
    servers.plans(name(session), session.sparkContext());
    String whole = Pieces.whole(name(session), text);
    try {
      return (LogicalPlan) planner.asked(new Request(session, whole, parameters, false));
    } catch (Refused refused) {
      if (!refused.isOfThePlanner() || !planner.attached) {
        throw refused;
      }
      // It has worked, and was killed. To plan once more changes nothing.
      return (LogicalPlan)
          started(session.sparkContext()).asked(new Request(session, whole, parameters, false));
    }
  }

  /** Whether the calling thread works for Python. */
  static boolean isInside(SparkSession session) {
    return session.sparkContext().getLocalProperty(INSIDE) != null;
  }

  /** Return by which name a session is known here. */
  static String name(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionUUID();
  }

  /** Run a statement, and return its rows. */
  static List<Row> run(SparkSession session, String text, Map<String, Object> parameters)
      throws Refused {
    List<Row> rows = new ArrayList<>();
    Pieces.end(name(session));
    Planner planner = started(session.sparkContext());
    for (Object row : (List<?>) planner.asked(new Request(session, text, parameters, true))) {
      rows.add((Row) row);
    }
    return rows;
  }

  /** Return the next thing to do for Python, null where there is none for a while. */
  Request next() throws InterruptedException {
    asking = true;
    attached = true;
    try {
      return waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
    } finally {
      asked = System.nanoTime();
      asking = false;
    }
  }

  /** Return how many sessions the process in Python holds: those that have asked it, and have not ended since. */
  public static int held() {
    return held;
  }

  /** Note how many sessions the process in Python holds from now on. */
  static void holds(int sessions) {
    LOG.info("wjoin plans for {} sessions", sessions);
    held = sessions;
  }

  /** Note a query that a session has started, by the number of its run. */
  static void runs(String run, String name) {
    queries.add(run, name);
  }

  /** Note that a query had ended when it was noted. */
  static void ended(String run) {
    queries.remove(run);
  }

  /** Hear from now on of the sessions of Spark's servers, of an operation before it asks to plan, and of queries. */
  static synchronized void hear(SparkContext context) {
    if (listened != context) {
      listened = context;
      // Each session of a server takes its settings from here, and its statements are logged.
      context.conf().setIfMissing(REDACTION, SECRETS);
      servers = new ServerSessions(Planner::end);
      context.addSparkListener(servers);
      queries = new RunningQueries();
      context.addSparkListener(queries);
    }
  }

  /** Have Python let a session go. */
  private static void end(String session) {
    Pieces.end(session);
    Planner planner = current();
    if (planner != null) {
      planner.waiting.add(Request.end(session));
    }
  }

  static boolean isRunning() {
    return current() != null;
  }

  private static synchronized Planner current() {
    return running;
  }

  private static synchronized Planner started(SparkContext context) throws Refused {
    if (running == null || !running.process.isAlive()) {
      running = new Planner(context);
      held = 0;
    }
    return running;
  }

  private Object asked(Request request) throws Refused {
    waiting.add(request);
    long begun = System.nanoTime();
    while (true) {
      try {
        return request.answer().get(POLL_MILLISECONDS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException none) {
        requireAlive(begun);
      } catch (ExecutionException failed) {
        throw (Refused) failed.getCause();
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
        throw refused("the statement was interrupted");
      }
    }
  }

  private void requireAlive(long begun) throws Refused {
    if (!process.isAlive()) {
      throw refused(python + " -m wjoin.bridge ended with status " + process.exitValue());
    }
    if (attached && !asking && System.nanoTime() - asked > TimeUnit.SECONDS.toNanos(SILENT_SECONDS)) {
      process.destroyForcibly().onExit().join();
      throw refused(python + " -m wjoin.bridge did not answer for " + SILENT_SECONDS + " s and was stopped");
    }
    if (!attached && System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(START_SECONDS)) {
      process.destroy();
      throw refused(python + " -m wjoin.bridge did not start within " + START_SECONDS + " s");
    }
  }

  private static Refused refused(String what) {
    return new Refused(CODE, "error[" + CODE + "]: wjoin cannot plan the statement: " + what + REMEDY);
  }

  private static String python(SparkConf settings) {
    for (String name : PYTHON_SETTINGS) {
      if (settings.contains(name)) {
        return settings.get(name);
      }
    }
    for (String name : PYTHON_VARIABLES) {
      String found = System.getenv(name);
      if (found != null && !found.isEmpty()) {
        return found;
      }
    }
    return "python3";
  }
}
