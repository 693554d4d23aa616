package wjoin.sinks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
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

  /** The sinks that one job can write, in the order of its writers; null before the first micro-batch. */
  private transient List<MicroBatches> folders;

  private transient FolderJob job;

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
      throws IOException, ReflectiveOperationException {
    SinkRows own = new SinkRows(name, prepared(rows), sink, provider, options);
    if (when == null) {
      targets.add(new MicroBatches(own, new WaitingRows(session, waiting, most), skipped));
      return;
    }
    WaitingRows kept = new WaitingRows(session, waiting, Long.MAX_VALUE);
    Commits commits = new Commits(session, waiting + "/commits", last);
    targets.add(new CommitsByRow(own, kept, prepared(when), commits, most > 0));
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
    List<MicroBatches> asked = asked(made, number);
    boolean mayWait = !targets.stream().allMatch(Target::readsOnce);
    boolean again = mayWait || asked.size() < targets.size();
    Dataset<Row> kept = again ? made.persist() : made;
    ExecutorService threads = Executors.newFixedThreadPool(atOnce, SetSinks::thread);
    try {
      List<Writing> left = new ArrayList<>();
      List<Target> apart = new ArrayList<>(targets);
      if (!asked.isEmpty()) {
        try {
          left.addAll(inOneJob(kept, number, asked));
          apart.removeAll(asked);
        } catch (Exception error) {
          Optional<IllegalStateException> told = Failures.told(error);
          if (told.isEmpty() || !mayWait) {
            throw told.isEmpty() ? error : told.get();
          }
          // Each by itself, so that the rows of the one that fails wait.
        }
      }
      if (left.isEmpty()) {
        // The first one makes the rows, for which others would only wait.
        apart.remove(0).write(kept, number);
      }
      apart.forEach(each -> left.add(() -> each.write(kept, number)));
      List<Future<?>> writing = new ArrayList<>();
      Properties properties = made.sparkSession().sparkContext().getLocalProperties();
      for (Writing each : left) {
        writing.add(threads.submit(() -> written(each, kept, properties)));
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
      if (again) {
        kept.unpersist();
      }
    }
  }

  /** Return the sinks that one job can write, and that have not yet got the micro-batch. */
  private List<MicroBatches> asked(Dataset<Row> made, long number) throws Exception {
    if (folders == null) {
      List<FolderWriter> writers = new ArrayList<>();
      List<MicroBatches> found = new ArrayList<>();
      for (Target each : targets) {
        if (each instanceof MicroBatches target) {
          target.writer(made).ifPresent(
              writer -> {
                writers.add(writer);
                found.add(target);
              });
        }
      }
      job = writers.isEmpty() ? null : new FolderJob(session.sparkContext(), writers);
      folders = found;
    }
    List<MicroBatches> asked = new ArrayList<>();
    for (MicroBatches each : folders) {
      if (each.isNext(number)) {
        asked.add(each);
      }
    }
    return asked;
  }

  /** Write the files of sinks in one job; return what is left to do for each: to let them count. */
  private List<Writing> inOneJob(Dataset<Row> made, long number, List<MicroBatches> asked) throws Exception {
    int[] places = asked.stream().mapToInt(folders::indexOf).toArray();
    List<Folder.Files> files = new ArrayList<>();
    for (MicroBatches each : asked) {
      files.add(each.begin(number));
    }
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<Row>) made).logicalPlan();
    RDD<InternalRow> rows =
        org.apache.spark.sql.classic.Dataset$.MODULE$
            .ofRows((org.apache.spark.sql.classic.SparkSession) made.sparkSession(), plan)
            .queryExecution()
            .toRdd();
    List<List<TaskCommitMessage>> written = job.write(rows, places, number, files);
    List<Writing> left = new ArrayList<>();
    for (int place = 0; place < places.length; place++) {
      MicroBatches target = asked.get(place);
      Folder.Files own = files.get(place);
      List<TaskCommitMessage> messages = written.get(place);
      left.add(() -> target.commit(made, number, own, messages));
    }
    return left;
  }

  private static Void written(Writing writing, Dataset<Row> made, Properties properties)
      throws Exception {
    SparkSession session = made.sparkSession();
    SparkContext context = session.sparkContext();
    // Its jobs belong to the micro-batch, but Spark changes properties while it writes.
    context.setLocalProperties((Properties) properties.clone());
    SparkSession.setActiveSession(session);
    writing.write();
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

  private Prepared prepared(Dataset<Row> rows) {
    return new Prepared(analyzed(rows), shape.output());
  }

  private static LogicalPlan analyzed(Dataset<Row> rows) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().analyzed();
  }
}
