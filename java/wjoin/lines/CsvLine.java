package wjoin.lines;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.csv.CSVOptions;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A line of CSV that is simple: as many fields as there are columns, no escapes, no control characters, quotes
 * only around a whole field, and each value that is wanted in a plain form.
 */
final class CsvLine implements Rows.Simple {
  private static final byte SEPARATOR = 1;
  private static final byte ODD = 2;
  private static final byte WIDE = 3;
  private static final byte QUOTE = 4;
  private static final int NOWHERE = -1;

  /** What a byte is; 0: a character of a value. */
  private final byte[] kinds = new byte[256];
  /** For each field where it starts and ends. */
  private final int[] starts;
  private final int[] ends;
  /** For each wanted column the number of its field, and the forms of its values. */
  private final int[] places;
  private final Form[] forms;

  CsvLine(StructType written, StructType wanted, CSVOptions options) {
    Arrays.fill(kinds, 0, ' ', ODD);
    Arrays.fill(kinds, 0x80, 0x100, WIDE);
    kinds['\t'] = 0;
    kinds['\\'] = ODD;
    kinds['"'] = QUOTE;
    kinds[options.delimiter().charAt(0)] = SEPARATOR;
    starts = new int[written.length()];
    ends = new int[written.length()];
    List<StructField> fields = Arrays.asList(written.fields());
    places = new int[wanted.length()];
    forms = new Form[wanted.length()];
    for (int n = 0; n < places.length; n++) {
      StructField field = wanted.fields()[n];
      // The column for broken lines is none of the file's.
      places[n] = fields.indexOf(field);
      forms[n] = Form.of(field.dataType(), options.zoneId());
    }
  }

  @Override
  public boolean put(byte[] line, int length, WritableColumnVector[] to, int at) {
    if (isBlank(line, length) || !split(line, length)) {
      return false;
    }
    for (int n = 0; n < places.length; n++) {
      int place = places[n];
      if (place == NOWHERE || starts[place] == ends[place]) {
        to[n].putNull(at);
      } else if (!forms[n].put(line, starts[place], ends[place], to[n], at)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isBlank(byte[] line, int length) {
    int at = 0;
    while (at < length && line[at] >= 0 && line[at] <= ' ') {
      at++;
    }
    return at == length;
  }

  /** Find where the fields are. Return whether there are as many as there should be, and nothing odd. */
  private boolean split(byte[] line, int length) {
    boolean isWide = false;
    int field = 0;
    int at = 0;
    while (field < starts.length) {
      boolean isQuoted = at < length && line[at] == '"';
      int start = isQuoted ? at + 1 : at;
      byte end = isQuoted ? QUOTE : SEPARATOR;
      byte kind = 0;
      for (at = start; at < length && (kind = kinds[line[at] & 0xff]) != end; at++) {
        if (kind == WIDE) {
          isWide = true;
        } else if (kind == ODD || kind == QUOTE) {
          return false;
        }
      }
      starts[field] = start;
      ends[field++] = at;
      if (isQuoted) {
        // An empty one has a meaning of its own; behind the quote the field is at its end.
        if (at == start || at++ == length || at < length && kinds[line[at] & 0xff] != SEPARATOR) {
          return false;
        }
      }
      if (at == length) {
        return field == starts.length && (!isWide || Rows.isText(line, length));
      }
      at++;
    }
    return false;
  }
}
