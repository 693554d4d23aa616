package wjoin.sinks;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.Sink;

/** A sink of a query that has several, and how its rows are made of what the query makes. */
final class Target {
  private static final String CAUSED = "Caused by: ";

  private final String name;
  private final Prepared rows;
  private final Sink sink;
  private final String provider;
  private final Map<String, String> options;
  private final int skipped;

  Target(
      String name,
      Prepared rows,
      Sink sink,
      String provider,
      Map<String, String> options,
      int skipped) {
    this.name = name;
    this.rows = rows;
    this.sink = sink;
    this.provider = provider;
    this.options = options;
    this.skipped = skipped;
  }

  /** Write the rows of micro-batch {@code number}; what goes wrong names the sink. */
  void write(Dataset<Row> made, long number) throws Exception {
    try {
      Dataset<Row> own = rows.over(made);
      if (sink == null) {
        own.write().format(provider).options(options).mode("append").save();
      } else {
        sink.addBatch(number - skipped, own);
      }
    } catch (Exception failed) {
      if (failed instanceof InterruptedException) {
        throw failed;
      }
      String message = "error[WJ704]: the sink " + name + " could not be written: ";
      // Of an error with a cause Spark tells the cause.
      IllegalStateException told = new IllegalStateException(message + cause(failed));
      told.addSuppressed(failed);
      throw told;
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
