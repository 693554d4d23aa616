package wjoin.lines;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
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

  private static final VarHandle EIGHT =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long ONES = 0x0101010101010101L;
  private static final long TOPS = 0x80L * ONES;
  private static final long QUOTES = '"' * ONES;
  private static final long BACKSLASHES = '\\' * ONES;

  /** What a byte is; 0: a character of a value. */
  private final byte[] kinds = new byte[256];
  private final long separators;
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
    separators = options.delimiter().charAt(0) * ONES;
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

  /** Return the first place from one on at which a byte is not known to be a character of a value. */
  private int plainUntil(byte[] line, int from, int length) {
    int at = from;
    for (; at + Long.BYTES <= length; at += Long.BYTES) {
      long eight = (long) EIGHT.get(line, at);
      long found =
          (eight | below(eight, ' ') | zero(eight ^ QUOTES) | zero(eight ^ BACKSLASHES) | zero(eight ^ separators))
              & TOPS;
      if (found != 0) {
        return at + Long.numberOfTrailingZeros(found) / Byte.SIZE;
      }
    }
    while (at < length && kinds[line[at] & 0xff] == 0) {
      at++;
    }
    return at;
  }

  /** Return eight bytes of which the first top bit is at the first one that is 0. */
  private static long zero(long eight) {
    return below(eight, 1);
  }

  /** Return eight bytes of which the first top bit is at the first one below a limit. */
  private static long below(long eight, int limit) {
    return eight - ONES * limit & ~eight;
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
      for (at = plainUntil(line, start, length); at < length; at = plainUntil(line, at + 1, length)) {
        kind = kinds[line[at] & 0xff];
        if (kind == end) {
          break;
        } else if (kind == WIDE) {
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
