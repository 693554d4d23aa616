package wjoin.sinks;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.Sink;

/**
 * A sink of a query that has several, and how its rows are made of what the query makes.
 *
 * <p>Spark's sinks leave out a micro-batch whose number is not above the last one that they have. So while rows
 * wait, those of later micro-batches wait behind them.
 *
 * <p>A sink that is committed {@code when} rows of a stream come gets those of several micro-batches at a time.
 */
final class Target {
  private static final String CAUSED = "Caused by: ";

  private final String name;
  private final Prepared rows;
  private final Sink sink;
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
      boolean others) {
    this.name = name;
    this.rows = rows;
    this.sink = sink;
    this.provider = provider;
    this.options = options;
    this.skipped = skipped;
    this.waiting = waiting;
    this.when = when;
    this.commits = commits;
    this.others = others;
  }

  /** Write what waits and the rows of micro-batch {@code number}; what goes wrong names the sink. */
  void write(Dataset<Row> made, long number) throws Exception {
    if (when != null) {
      collect(made, number);
      return;
    }
    boolean waits = waiting.numbers().contains(number);
    try {
      for (long each : waiting.numbers()) {
        give(waiting.rows(made.sparkSession(), List.of(each)), each - skipped);
        waiting.written(each);
      }
      if (!waits) {
        give(rows.over(made), number - skipped);
      }
    } catch (Exception error) {
      note(error);
      if (!waits && !waiting.keep(rows.over(made), number)) {
        throw told(error);
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
    } catch (Exception error) {
      note(error);
      if (!others) {
        throw told(error);
      }
    }
  }

  private void note(Exception error) throws Exception {
    if (error instanceof InterruptedException) {
      throw error;
    }
    failing = true;
    failed = cause(error);
  }

  private IllegalStateException told(Exception error) {
    String message = "error[WJ704]: the sink " + name + " could not be written: " + failed;
    // Of an error with a cause Spark tells the cause.
    IllegalStateException told = new IllegalStateException(message);
    told.addSuppressed(error);
    return told;
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

  /** Return in a line why something failed: the innermost cause, also one that a task has told. */
  private static String cause(Throwable failed) {
    StringWriter trace = new StringWriter();
    failed.printStackTrace(new PrintWriter(trace));
    List<String> lines = trace.toString().lines().map(String::strip).toList();
    List<String> causes = lines.stream().filter(each -> each.startsWith(CAUSED)).toList();
    return causes.isEmpty()
        ? lines.get(0)
        : causes.get(causes.size() - 1).substring(CAUSED.length());
  }
}
