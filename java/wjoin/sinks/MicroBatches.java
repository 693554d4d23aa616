package wjoin.sinks;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.unsafe.Platform;
import scala.util.control.NonFatal;

/**
 * A sink that gets each micro-batch by itself.
 *
 * <p>Spark's sinks leave out a micro-batch whose number is not above the last one that they have. So while rows
 * wait, those of later micro-batches wait behind them.
 */
final class MicroBatches extends Target {
  private final Optional<Folder> folder;
  private final int skipped;

  /** Takes a sink that has {@code skipped} micro-batches fewer than the query. */
  MicroBatches(SinkRows own, WaitingRows waiting, int skipped)
      throws ReflectiveOperationException, IOException {
    super(own, waiting);
    this.folder = Folder.of(own.sink());
    this.skipped = skipped;
  }

  /** Return how one job writes the rows of this sink and others, nothing where it cannot. */
  Optional<FolderWriter> writer(Dataset<Row> made) {
    if (folder.isEmpty()) {
      return Optional.empty();
    }
    try {
      LogicalPlan given = ((org.apache.spark.sql.classic.Dataset<Row>) made).logicalPlan();
      return folder.get().writer(own.name(), own.rows().over(made), given);
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

  /** Write what waits and the rows of micro-batch {@code number}. */
  @Override
  void write(Dataset<Row> made, long number) throws Exception {
    naming(
        made,
        number,
        () -> {
          boolean waits = waiting.numbers().contains(number);
          for (long each : waiting.numbers()) {
            own.give(waiting.rows(made.sparkSession(), List.of(each)), each - skipped);
            waiting.written(each);
          }
          if (!waits) {
            own.give(own.rows().over(made), number - skipped);
          }
        });
  }

  @Override
  boolean readsOnce() {
    return own.sink() != null && !waiting.takes();
  }

  @Override
  Optional<Waiting> waiting() {
    return waiting(true, "");
  }

  /** Write; if that fails, the rows of micro-batch {@code number} wait, or the error names the sink. */
  private void naming(Dataset<Row> made, long number, Writing writing) throws Exception {
    boolean waits = waiting.numbers().contains(number);
    try {
      writing.write();
    } catch (Throwable error) {
      note(error);
      if (!waits && !kept(made, number, error)) {
        throw Failures.of(own.name(), error);
      }
    }
  }

  /** Let the rows of a micro-batch wait; return whether they do. */
  private boolean kept(Dataset<Row> made, long number, Throwable error) {
    try {
      return waiting.keep(own.rows().over(made), number);
    } catch (Throwable also) {
      if (!NonFatal.apply(also)) {
        Platform.throwException(also);
      }
      error.addSuppressed(also);
      return false;
    }
  }
}
