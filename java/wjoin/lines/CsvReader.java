package wjoin.lines;

import java.io.Serializable;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.csv.CSVHeaderChecker;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.catalyst.csv.UnivocityParser;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.datasources.HadoopFileLinesReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Reads a file of CSV, or a part of one, into columns. */
final class CsvReader extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
    implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Newer versions of Spark may read the files that are packed in these. */
  private static final Pattern ARCHIVE = Pattern.compile("(?i).*\\.(tar|tgz|zip|7z|jar)(\\.\\w+)?");

  private final Function1<PartitionedFile, Iterator<InternalRow>> own;
  private final Broadcast<SerializableConfiguration> hadoop;
  private final CSVOptions options;
  private final StructType data;
  private final StructType partitions;
  private final StructType wanted;

  /** {@code own}: Spark's reader of the same. */
  CsvReader(
      Function1<PartitionedFile, Iterator<InternalRow>> own,
      Broadcast<SerializableConfiguration> hadoop,
      CSVOptions options,
      StructType data,
      StructType partitions,
      StructType wanted) {
    this.own = own;
    this.hadoop = hadoop;
    this.options = options;
    this.data = data;
    this.partitions = partitions;
    this.wanted = wanted;
  }

  @Override
  @SuppressWarnings("unchecked") // as Spark's columnar formats do
  public Iterator<InternalRow> apply(PartitionedFile file) {
    boolean isArchive = ARCHIVE.matcher(file.toPath().getName()).matches();
    Rows rows = isArchive ? new Rows(own.apply(file), wanted) : lines(file);
    return (Iterator<InternalRow>)
        (Iterator<?>) new Batches(rows, wanted, partitions, file.partitionValues());
  }

  /** Does what Spark's format and its source of lines do, up to the parsing of a line. */
  private Rows lines(PartitionedFile file) {
    HadoopFileLinesReader lines =
        new HadoopFileLinesReader(file, options.lineSeparatorInRead(), hadoop.value().value());
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> lines.close());
    StructType written = withoutCorrupt(data);
    StructType read = withoutCorrupt(wanted);
    UnivocityParser parser = new UnivocityParser(written, read, options);
    StructType named = options.isColumnPruningEnabled(wanted) ? read : written;
    new CSVHeaderChecker(named, options, "CSV file: " + file.urlEncodedPath(), file.start() == 0)
        .checkHeaderColumnNames(lines.map(Rows::text), parser.tokenizer());
    FailureSafeParser<String> safe =
        new FailureSafeParser<>(
            line -> Option.option2Iterable(parser.parse().apply(line)),
            options.parseMode(),
            wanted,
            options.columnNameOfCorruptRecord());
    return new Rows(
        lines,
        new CsvLine(written, wanted, options),
        line -> line.trim().isEmpty() ? Iterator.empty() : safe.parse(line),
        wanted);
  }

  private StructType withoutCorrupt(StructType schema) {
    return new StructType(
        Arrays.stream(schema.fields())
            .filter(each -> !each.name().equals(options.columnNameOfCorruptRecord()))
            .toArray(StructField[]::new));
  }
}
