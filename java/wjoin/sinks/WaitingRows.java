package wjoin.sinks;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Rows that wait for a sink: Parquet files in a folder for each micro-batch, in their order. */
final class WaitingRows {
  /** Spark writes it last. */
  private static final String WHOLE = "_SUCCESS";

  private final Path folder;
  private final FileSystem files;
  private final long most;
  private final SortedMap<Long, Long> bytes = new TreeMap<>();
  private long since;

  /** Takes what waits in a folder, which need not be there; {@code most} bytes may wait. */
  WaitingRows(SparkSession session, String folder, long most) throws IOException {
    this.folder = new Path(folder);
    this.files = this.folder.getFileSystem(session.sessionState().newHadoopConf());
    this.most = most;
    for (FileStatus each : listed(files, this.folder)) {
      String name = each.getPath().getName();
      if (name.matches("\\d+") && files.exists(new Path(each.getPath(), WHOLE))) {
        add(Long.parseLong(name), each.getPath());
      }
    }
  }

  /** Return what is in a folder, nothing where there is none. */
  static FileStatus[] listed(FileSystem files, Path folder) throws IOException {
    try {
      return files.listStatus(folder);
    } catch (FileNotFoundException none) {
      return new FileStatus[0];
    }
  }

  /** Whether any rows may wait. */
  boolean takes() {
    return most > 0;
  }

  /** Return the numbers of the micro-batches whose rows wait. */
  synchronized List<Long> numbers() {
    return new ArrayList<>(bytes.keySet());
  }

  synchronized long bytes() {
    return bytes.values().stream().mapToLong(Long::longValue).sum();
  }

  /** Return since when rows wait, in milliseconds since 1970. */
  synchronized long since() {
    return since;
  }

  Dataset<Row> rows(SparkSession session, List<Long> numbers) {
    return session.read().parquet(numbers.stream().map(each -> path(each).toString()).toArray(String[]::new));
  }

  /** Keep the rows of a micro-batch; return whether there was room for them. */
  boolean keep(Dataset<Row> rows, long number) throws IOException {
    if (!takes()) {
      return false;
    }
    rows.write().mode("overwrite").parquet(path(number).toString());
    add(number, path(number));
    if (bytes() <= most) {
      return true;
    }
    written(number);
    return false;
  }

  /** Forget the rows of a micro-batch: the sink has them. */
  void written(long number) throws IOException {
    files.delete(path(number), true);
    synchronized (this) {
      bytes.remove(number);
    }
  }

  private Path path(long number) {
    return new Path(folder, Long.toString(number));
  }

  private synchronized void add(long number, Path path) throws IOException {
    if (bytes.isEmpty() || number < bytes.firstKey()) {
      since = files.getFileStatus(path).getModificationTime();
    }
    bytes.put(number, files.getContentSummary(path).getLength());
  }
}
