package wjoin.lines;

import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import org.apache.hadoop.io.Text;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/** The rows of lines of text, put into columns one by one; Spark makes those of odd lines. */
final class Rows {
  /** A line that is read without Spark. */
  interface Simple {
    /** Put what a line says at a place in columns. Return false where Spark is to read it. */
    boolean put(byte[] line, int length, WritableColumnVector[] to, int at);
  }

  private final Iterator<Text> lines;
  private final Simple simple;
  private final Function<Text, Iterator<InternalRow>> parser;
  private final Values values;
  private Iterator<InternalRow> parsed;
  private long bytes;

  Rows(
      Iterator<Text> lines,
      Simple simple,
      Function<Text, Iterator<InternalRow>> parser,
      StructType wanted) {
    this.lines = lines;
    this.simple = simple;
    this.parser = parser;
    values = new Values(wanted);
    parsed = Iterator.empty();
  }

  /** Rows that Spark has made. */
  Rows(Iterator<InternalRow> made, StructType wanted) {
    this(Iterator.empty(), (line, length, to, at) -> false, line -> Iterator.empty(), wanted);
    parsed = made;
  }

  /** Return a line as Spark's sources of lines do. */
  static String text(Text line) {
    return new String(line.getBytes(), 0, line.getLength(), StandardCharsets.UTF_8);
  }

  /** Return whether bytes are UTF-8: other ones become a certain character. */
  static boolean isText(byte[] line, int length) {
    return new String(line, 0, length, StandardCharsets.UTF_8).indexOf('\ufffd') < 0;
  }

  /** Return the bytes of the lines that have been read. */
  long bytes() {
    return bytes;
  }

  /** Put the next row at a place in columns. Return whether there is one. */
  boolean next(WritableColumnVector[] to, int at) {
    while (!parsed.hasNext()) {
      if (!lines.hasNext()) {
        return false;
      }
      Text line = lines.next();
      bytes += line.getLength();
      if (simple.put(line.getBytes(), line.getLength(), to, at)) {
        return true;
      }
      for (WritableColumnVector each : to) {
        // It may have been found to be missing.
        each.putNotNull(at);
      }
      parsed = parser.apply(line);
    }
    values.put(parsed.next(), to, at);
    return true;
  }
}
