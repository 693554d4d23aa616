package wjoin.sinks;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.streaming.Sink;

/**
 * A sink of a query that has several, and how its rows are made of what the query makes.
 *
 * <p>Without a {@code sink} of Spark's they are written as a table is, by {@code provider}.
 */
record SinkRows(String name, Prepared rows, Sink sink, String provider, Map<String, String> options) {
  /** Give the sink rows under a number; one of Spark's leaves out those that it has. */
  void give(Dataset<Row> own, long number) {
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
}
