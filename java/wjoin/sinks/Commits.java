package wjoin.sinks;

import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The commits of a sink that is not committed with each micro-batch: their numbers, and with which micro-batch
 * each ends. A file COMMIT-MICROBATCH in a folder is written before the sink is, so that a micro-batch which is
 * repeated ends the same commit.
 */
final class Commits {
  private final Path folder;
  private final FileSystem files;
  private final long last;
  private final TreeMap<Long, Long> ends = new TreeMap<>();

  /** Takes the folder, which need not be there, and the number of the last commit that the sink has. */
  Commits(SparkSession session, String folder, long last) throws IOException {
    this.folder = new Path(folder);
    this.files = this.folder.getFileSystem(session.sessionState().newHadoopConf());
    this.last = last;
    for (FileStatus each : WaitingRows.listed(files, this.folder)) {
      String[] numbers = each.getPath().getName().split("-");
      ends.put(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    }
  }

  /** Let a commit end with a micro-batch, unless one does. */
  synchronized void end(long microBatch) throws IOException {
    if (ends.containsValue(microBatch)) {
      return;
    }
    long number = Math.max(last, ends.isEmpty() ? -1 : ends.lastKey()) + 1;
    files.create(path(number, microBatch), false).close();
    ends.put(number, microBatch);
  }

  /** Forget a commit that the sink has: only the last one may be asked for again. */
  synchronized void forget(long number) throws IOException {
    if (number < ends.lastKey()) {
      files.delete(path(number, ends.remove(number)), false);
    }
  }

  /** Return with which micro-batches the commits end that are known, by their numbers. */
  synchronized Map<Long, Long> ends() {
    return new TreeMap<>(ends);
  }

  private Path path(long number, long microBatch) {
    return new Path(folder, number + "-" + microBatch);
  }
}
