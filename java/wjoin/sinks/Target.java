package wjoin.sinks;

import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.unsafe.Platform;
import scala.util.control.NonFatal;

/** A sink that is written with each micro-batch, and the rows that wait for it. */
abstract class Target {
  final SinkRows own;
  final WaitingRows waiting;
  private volatile String failed = "it has not been tried again yet";

  Target(SinkRows own, WaitingRows waiting) {
    this.own = own;
    this.waiting = waiting;
  }

  /** Write micro-batch {@code number}; what goes wrong names the sink, or has its rows wait. */
  abstract void write(Dataset<Row> made, long number) throws Exception;

  /** Whether the rows of a micro-batch are made once for this sink, whatever comes of them. */
  abstract boolean readsOnce();

  /** Return what waits for the sink, nothing where nothing does. */
  abstract Optional<Waiting> waiting();

  /** Return the same; {@code otherwise}: why rows wait where the sink does not fail. */
  final Optional<Waiting> waiting(boolean fails, String otherwise) {
    int count = waiting.numbers().size();
    String why = fails ? failed : otherwise;
    return count == 0
        ? Optional.empty()
        : Optional.of(new Waiting(own.name(), count, waiting.bytes(), waiting.since(), why, fails));
  }

  /** Take note of why the sink fails; a full disk is an Error of Hadoop's. */
  final void note(Throwable error) {
    if (!NonFatal.apply(error)) {
      Platform.throwException(error);
    }
    failed = Failures.cause(error);
  }
}
