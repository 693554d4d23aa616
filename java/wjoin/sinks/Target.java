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
  private volatile String failed = "it has not been tried again yet";

  Target(
      String name,
      Prepared rows,
      Sink sink,
      String provider,
      Map<String, String> options,
      int skipped,
      WaitingRows waiting) {
    this.name = name;
    this.rows = rows;
    this.sink = sink;
    this.provider = provider;
    this.options = options;
    this.skipped = skipped;
    this.waiting = waiting;
  }

  /** Write what waits and the rows of micro-batch {@code number}; what goes wrong names the sink. */
  void write(Dataset<Row> made, long number) throws Exception {
    boolean waits = waiting.numbers().contains(number);
    try {
      for (long each : waiting.numbers()) {
        give(waiting.rows(made.sparkSession(), each), each);
        waiting.written(each);
      }
      if (!waits) {
        give(rows.over(made), number);
      }
    } catch (Exception error) {
      if (error instanceof InterruptedException) {
        throw error;
      }
      failed = cause(error);
      if (!waits && !waiting.keep(rows.over(made), number)) {
        String message = "error[WJ704]: the sink " + name + " could not be written: " + failed;
        // Of an error with a cause Spark tells the cause.
        IllegalStateException told = new IllegalStateException(message);
        told.addSuppressed(error);
        throw told;
      }
    }
  }

  /** Return what waits for the sink, nothing where nothing does. */
  Optional<Waiting> waiting() {
    int count = waiting.numbers().size();
    return count == 0
        ? Optional.empty()
        : Optional.of(new Waiting(name, count, waiting.bytes(), waiting.since(), failed));
  }

  /** Whether the rows of a micro-batch are made once for this sink, whatever comes of them. */
  boolean readsOnce() {
    return sink != null && !waiting.takes();
  }

  private void give(Dataset<Row> own, long number) {
    if (sink != null) {
      sink.addBatch(number - skipped, own);
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
