package wjoin.lines;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.json.JSONOptionsInRead;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's JSON, read into columns.
 *
 * <p>What Spark makes of a line is what comes: a line whose meaning is not plain is given to its parser.
 */
final class SimpleJson extends JsonFileFormat {
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
    JSONOptionsInRead parsed =
        new JSONOptionsInRead(options, conf.sessionLocalTimeZone(), conf.columnNameOfCorruptRecord());
    return new FileReader(
        // It also refuses, on the driver, what Spark refuses.
        buildReader(session, data, partitions, wanted, filters, options, hadoop),
        session.sparkContext(),
        hadoop,
        new JsonLines(parsed, wanted),
        partitions,
        wanted);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SimpleJson;
  }

  @Override
  public int hashCode() {
    return SimpleJson.class.hashCode();
  }
}
