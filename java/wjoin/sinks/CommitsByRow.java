package wjoin.sinks;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** A sink that gets the rows of several micro-batches at a time, with the one in which rows of a stream come. */
final class CommitsByRow extends Target {
  private final Prepared when;
  private final Commits commits;
  private final boolean others;
  private volatile boolean fails;

  /** Takes the rows that commit, {@code when}; {@code others} go on where this sink fails. */
  CommitsByRow(SinkRows own, WaitingRows waiting, Prepared when, Commits commits, boolean others) {
    super(own, waiting);
    this.when = when;
    this.commits = commits;
    this.others = others;
  }

  /** Keep the rows of a micro-batch, and write the commits that have ended. */
  @Override
  void write(Dataset<Row> made, long number) throws Exception {
    if (!waiting.numbers().contains(number)) {
      waiting.keep(own.rows().over(made), number);
    }
    if (!when.over(made).isEmpty()) {
      commits.end(number);
    }
    try {
      for (Map.Entry<Long, Long> each : commits.ends().entrySet()) {
        List<Long> whole = waiting.numbers().stream().filter(one -> one <= each.getValue()).toList();
        if (!whole.isEmpty()) {
          own.give(waiting.rows(made.sparkSession(), whole), each.getKey());
          for (long one : whole) {
            waiting.written(one);
          }
        }
        commits.forget(each.getKey());
      }
      fails = false;
    } catch (Throwable error) {
      note(error);
      fails = true;
      if (!others) {
        throw Failures.of(own.name(), error);
      }
    }
  }

  @Override
  boolean readsOnce() {
    return false;
  }

  @Override
  Optional<Waiting> waiting() {
    return waiting(fails, "no row has committed them yet");
  }
}
