package wjoin.lines;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.hadoop.io.Text;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;

/** What a format makes of lines. */
interface Lines extends Serializable {
  /** Return the bytes between lines, none where they end as usual. */
  Option<byte[]> separator();

  /** Return the rows of a file's lines. */
  Rows rows(Iterator<Text> lines, PartitionedFile file);

  /** Return a schema without the column that has a certain name: that for broken lines is none of a file's. */
  default StructType without(String name, StructType schema) {
    return new StructType(
        Arrays.stream(schema.fields()).filter(each -> !each.name().equals(name)).toArray(StructField[]::new));
  }
}
