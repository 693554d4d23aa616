package wjoin.lines;

import java.io.Serializable;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.HadoopFileLinesReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** Reads a file of lines, or a part of one, into columns. */
final class FileReader extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
    implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Newer versions of Spark may read the files that are packed in these. */
  private static final Pattern ARCHIVE = Pattern.compile("(?i).*\\.(tar|tgz|zip|7z|jar)(\\.\\w+)?");

  private final Function1<PartitionedFile, Iterator<InternalRow>> own;
  private final Broadcast<SerializableConfiguration> hadoop;
  private final Lines format;
  private final StructType partitions;
  private final StructType wanted;

  /** {@code own}: Spark's reader of the same. */
  FileReader(
      Function1<PartitionedFile, Iterator<InternalRow>> own,
      SparkContext context,
      Configuration hadoop,
      Lines format,
      StructType partitions,
      StructType wanted) {
    this.own = own;
    this.hadoop =
        context.broadcast(
            new SerializableConfiguration(hadoop), ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    this.format = format;
    this.partitions = partitions;
    this.wanted = wanted;
  }

  @Override
  @SuppressWarnings("unchecked") // as Spark's columnar formats do
  public Iterator<InternalRow> apply(PartitionedFile file) {
    boolean isArchive = ARCHIVE.matcher(file.toPath().getName()).matches();
    Rows rows = isArchive ? new Rows(own.apply(file), wanted) : format.rows(lines(file), file);
    return (Iterator<InternalRow>)
        (Iterator<?>) new Batches(rows, wanted, partitions, file.partitionValues());
  }

  private HadoopFileLinesReader lines(PartitionedFile file) {
    HadoopFileLinesReader lines =
        new HadoopFileLinesReader(file, format.separator(), hadoop.value().value());
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> lines.close());
    return lines;
  }
}
