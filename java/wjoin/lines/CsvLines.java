package wjoin.lines;

import org.apache.hadoop.io.Text;
import org.apache.spark.sql.catalyst.csv.CSVHeaderChecker;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.catalyst.csv.UnivocityParser;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;

/** Lines of CSV: does what Spark's format and its source of lines do, up to the parsing of a line. */
record CsvLines(CSVOptions options, StructType data, StructType wanted) implements Lines {
  @Override
  public Option<byte[]> separator() {
    return options.lineSeparatorInRead();
  }

  @Override
  public Rows rows(Iterator<Text> lines, PartitionedFile file) {
    String corrupt = options.columnNameOfCorruptRecord();
    StructType written = without(corrupt, data);
    StructType read = without(corrupt, wanted);
    UnivocityParser parser = new UnivocityParser(written, read, options);
    StructType named = options.isColumnPruningEnabled(wanted) ? read : written;
    new CSVHeaderChecker(named, options, "CSV file: " + file.urlEncodedPath(), file.start() == 0)
        .checkHeaderColumnNames(lines.map(Rows::text), parser.tokenizer());
    FailureSafeParser<String> safe =
        new FailureSafeParser<>(
            line -> Option.option2Iterable(parser.parse().apply(line)),
            options.parseMode(),
            wanted,
            corrupt);
    return new Rows(
        lines,
        new CsvLine(written, wanted, options),
        line -> {
          String text = Rows.text(line);
          return text.trim().isEmpty() ? Iterator.empty() : safe.parse(text);
        },
        wanted);
  }
}
