package wjoin.sinks;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.unsafe.Platform;
import scala.util.control.NonFatal;

/**
 * A sink of a query that has several, and how its rows are made of what the query makes.
 *
 * <p>Spark's sinks leave out a micro-batch whose number is not above the last one that they have. So while rows
 * wait, those of later micro-batches wait behind them.
 *
 * <p>A sink that is committed {@code when} rows of a stream come gets those of several micro-batches at a time.
 */
final class Target {
  private final String name;
  private final Prepared rows;
  private final Sink sink;
  private final Optional<Folder> folder;
  private final String provider;
  private final Map<String, String> options;
  private final int skipped;
  private final WaitingRows waiting;
  private final Prepared when;
  private final Commits commits;
  private final boolean others;
  private volatile boolean failing;
  private volatile String failed = "it has not been tried again yet";

  Target(
      String name,
      Prepared rows,
      Sink sink,
      String provider,
      Map<String, String> options,
      int skipped,
      WaitingRows waiting,
      Prepared when,
      Commits commits,
      boolean others)
      throws ReflectiveOperationException, IOException {
    this.name = name;
    this.rows = rows;
    this.sink = sink;
    this.folder = when == null ? Folder.of(sink) : Optional.empty();
    this.provider = provider;
    this.options = options;
    this.skipped = skipped;
    this.waiting = waiting;
    this.when = when;
    this.commits = commits;
    this.others = others;
  }

  /** Return how one job writes the rows of this sink and others, nothing where it cannot. */
  Optional<FolderWriter> writer(Dataset<Row> made) {
    if (folder.isEmpty()) {
      return Optional.empty();
    }
    try {
      LogicalPlan given = ((org.apache.spark.sql.classic.Dataset<Row>) made).logicalPlan();
      return folder.get().writer(name, rows.over(made), given);
    } catch (Exception unready) {
      // The sink itself tells it when it is written.
      return Optional.empty();
    }
  }

  /** Whether rows of micro-batch {@code number} are to be written, and none before them. */
  boolean isNext(long number) {
    try {
      return waiting.numbers().isEmpty() && !folder.orElseThrow().has(number - skipped);
    } catch (ReflectiveOperationException unread) {
      // As above.
      return false;
    }
  }

  /** Begin the files of micro-batch {@code number}. */
  Folder.Files begin(long number) throws ReflectiveOperationException {
    return folder.orElseThrow().begin(number - skipped);
  }

  /** Let the files of micro-batch {@code number} count; what goes wrong names the sink. */
  void commit(Dataset<Row> made, long number, Folder.Files files, List<TaskCommitMessage> written)
      throws Exception {
    naming(made, number, () -> files.commit(written));
  }

  /** Write what waits and the rows of micro-batch {@code number}; what goes wrong names the sink. */
  void write(Dataset<Row> made, long number) throws Exception {
    if (when != null) {
      collect(made, number);
      return;
    }
    naming(
        made,
        number,
        () -> {
          boolean waits = waiting.numbers().contains(number);
          for (long each : waiting.numbers()) {
            give(waiting.rows(made.sparkSession(), List.of(each)), each - skipped);
            waiting.written(each);
          }
          if (!waits) {
            give(rows.over(made), number - skipped);
          }
        });
  }

  /** Write; if that fails, the rows of micro-batch {@code number} wait, or the error names the sink. */
  private void naming(Dataset<Row> made, long number, Writing writing) throws Exception {
    boolean waits = waiting.numbers().contains(number);
    try {
      writing.write();
    } catch (Throwable error) {
      note(error);
      if (!waits && !kept(made, number, error)) {
        throw Failures.of(name, error);
      }
    }
  }

  /** Keep the rows of a micro-batch, and write the commits that have ended. */
  private void collect(Dataset<Row> made, long number) throws Exception {
    if (!waiting.numbers().contains(number)) {
      waiting.keep(rows.over(made), number);
    }
    if (!when.over(made).isEmpty()) {
      commits.end(number);
    }
    try {
      for (Map.Entry<Long, Long> each : commits.ends().entrySet()) {
        List<Long> own = waiting.numbers().stream().filter(one -> one <= each.getValue()).toList();
        if (!own.isEmpty()) {
          give(waiting.rows(made.sparkSession(), own), each.getKey());
          for (long one : own) {
            waiting.written(one);
          }
        }
        commits.forget(each.getKey());
      }
      failing = false;
    } catch (Throwable error) {
      note(error);
      if (!others) {
        throw Failures.of(name, error);
      }
    }
  }

  /** Take note of why the sink fails; a full disk is an Error of Hadoop's. */
  private void note(Throwable error) {
    if (!NonFatal.apply(error)) {
      Platform.throwException(error);
    }
    failing = true;
    failed = Failures.cause(error);
  }

  /** Return what waits for the sink because it fails, nothing where nothing does. */
  Optional<Waiting> waiting() {
    int count = when == null || failing ? waiting.numbers().size() : 0;
    return count == 0
        ? Optional.empty()
        : Optional.of(new Waiting(name, count, waiting.bytes(), waiting.since(), failed));
  }

  /** Whether the rows of a micro-batch are made once for this sink, whatever comes of them. */
  boolean readsOnce() {
    return sink != null && when == null && !waiting.takes();
  }

  private void give(Dataset<Row> own, long number) {
    if (sink != null) {
      sink.addBatch(number, own);
      return;
    }
    // Spark's console reads no more rows than it shows, and what is not read is not joined.
    own.write().format("noop").mode("append").save();
    if (!provider.equalsIgnoreCase("noop")) {
      own.write().format(provider).options(options).mode("append").save();
    }
  }

  /** Let the rows of a micro-batch wait; return whether they do. */
  private boolean kept(Dataset<Row> made, long number, Throwable error) {
    try {
      return waiting.keep(rows.over(made), number);
    } catch (Throwable also) {
      if (!NonFatal.apply(also)) {
        Platform.throwException(also);
      }
      error.addSuppressed(also);
      return false;
    }
  }
}
