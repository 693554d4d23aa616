package wjoin.lines;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's CSV, read into columns.
 *
 * <p>What Spark makes of a line is what comes: a line whose meaning is not plain is given to its parser.
 */
final class SimpleCsv extends CSVFileFormat {
  private static final long serialVersionUID = 1L;

  @Override
  public boolean supportBatch(SparkSession session, StructType schema) {
    return true;
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session,
      StructType data,
      StructType partitions,
      StructType wanted,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration hadoop) {
    SQLConf conf = session.sessionState().conf();
    CSVOptions parsed =
        new CSVOptions(
            options, conf.csvColumnPruning(), conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
    return new FileReader(
        // It also refuses, on the driver, what Spark refuses.
        buildReader(session, data, partitions, wanted, filters, options, hadoop),
        session.sparkContext(),
        hadoop,
        new CsvLines(parsed, data, wanted),
        partitions,
        wanted);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SimpleCsv;
  }

  @Override
  public int hashCode() {
    return SimpleCsv.class.hashCode();
  }
}
