package wjoin.sinks;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction;
import py4j.Py4JException;

/** A function in Python that gets the rows of each micro-batch, and its number. */
public final class FunctionSink implements Sink {
  private final PythonForeachBatchFunction function;

  public FunctionSink(PythonForeachBatchFunction function) {
    this.function = function;
  }

  @Override
  public void addBatch(long number, Dataset<Row> rows) {
    try {
      function.call(rows, number);
    } catch (Py4JException failed) {
      throw new Raised(failed);
    }
  }

  @Override
  public String name() {
    return "foreachBatch";
  }

  /** What the function has raised, in Python's words: the last line of its stack. */
  private static final class Raised extends RuntimeException {
    private static final long serialVersionUID = 1;

    Raised(Py4JException failed) {
      super(failed.getMessage().lines().filter(line -> !line.isBlank()).reduce("", (before, line) -> line));
    }

    @Override
    public String toString() {
      return getMessage();
    }
  }
}
