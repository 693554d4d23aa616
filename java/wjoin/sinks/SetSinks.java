package wjoin.sinks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.Sink;

/** Writes the micro-batches of a query into several sinks; what the query makes is made once for all. */
public final class SetSinks implements VoidFunction2<Dataset<Row>, Long> {
  private static final long serialVersionUID = 1;

  private final transient SparkSession session;
  private final transient LogicalPlan shape;
  private final transient List<Target> targets = new ArrayList<>();
  private final transient Semaphore gate = new Semaphore(1);
  private final int atOnce;

  /** Takes a relation without rows in whose place micro-batches come; writes {@code atOnce} at a time. */
  public SetSinks(Dataset<Row> shape, int atOnce) {
    this.session = shape.sparkSession();
    this.shape = analyzed(shape);
    this.atOnce = atOnce;
  }

  /**
   * Add a sink, with its rows over the relation. Without a {@code sink} of Spark's they are written as a table
   * is, by {@code provider}. It has {@code skipped} micro-batches fewer than the query. If it fails, its rows
   * wait in a folder, up to {@code most} bytes; a micro-batch with more, or any where that is 0, fails. Where
   * there is a relation {@code when}, over the same one, all rows wait until a micro-batch has rows of it, and
   * come with those as one commit, after the {@code last} that the sink has.
   */
  public void add(
      String name,
      Dataset<Row> rows,
      Sink sink,
      String provider,
      Map<String, String> options,
      int skipped,
      String waiting,
      long most,
      Dataset<Row> when,
      long last)
      throws IOException {
    Prepared prepared = new Prepared(analyzed(rows), shape.output());
    WaitingRows kept = new WaitingRows(session, waiting, when == null ? most : Long.MAX_VALUE);
    Prepared ends = when == null ? null : new Prepared(analyzed(when), shape.output());
    Commits commits = when == null ? null : new Commits(session, waiting + "/commits", last);
    targets.add(
        new Target(name, prepared, sink, provider, options, skipped, kept, ends, commits, most > 0));
  }

  /** For which sinks rows wait. */
  public List<Waiting> waiting() {
    return targets.stream().flatMap(each -> each.waiting().stream()).toList();
  }

  /** Let the micro-batch at work be written, and none after it: those wait until they are interrupted. */
  public void shut() {
    gate.acquireUninterruptibly();
  }

  @Override
  public void call(Dataset<Row> made, Long number) throws Exception {
    gate.acquire();
    try {
      write(made, number);
    } finally {
      gate.release();
    }
  }

  private void write(Dataset<Row> made, long number) throws Exception {
    if (targets.size() == 1 && targets.get(0).readsOnce()) {
      targets.get(0).write(made, number);
      return;
    }
    Dataset<Row> kept = made.persist();
    ExecutorService threads = Executors.newFixedThreadPool(atOnce, SetSinks::thread);
    try {
      // The first one makes the rows, for which others would only wait.
      targets.get(0).write(kept, number);
      List<Future<?>> writing = new ArrayList<>();
      Properties properties = made.sparkSession().sparkContext().getLocalProperties();
      for (Target each : targets.subList(1, targets.size())) {
        writing.add(threads.submit(() -> written(each, kept, number, properties)));
      }
      for (Future<?> each : writing) {
        each.get();
      }
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof Exception cause ? cause : failed;
    } finally {
      // What is still being written must not go on beside the next start of the query.
      threads.shutdownNow();
      ended(threads);
      kept.unpersist();
    }
  }

  private static Void written(
      Target target, Dataset<Row> made, long number, Properties properties) throws Exception {
    SparkSession session = made.sparkSession();
    SparkContext context = session.sparkContext();
    // Its jobs belong to the micro-batch, but Spark changes properties while it writes.
    context.setLocalProperties((Properties) properties.clone());
    SparkSession.setActiveSession(session);
    target.write(made, number);
    return null;
  }

  private static void ended(ExecutorService threads) {
    boolean interrupted = false;
    while (true) {
      try {
        if (threads.awaitTermination(1, TimeUnit.SECONDS)) {
          break;
        }
      } catch (InterruptedException again) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "wjoin-sinks");
    thread.setDaemon(true);
    return thread;
  }

  private static LogicalPlan analyzed(Dataset<Row> rows) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().analyzed();
  }
}
