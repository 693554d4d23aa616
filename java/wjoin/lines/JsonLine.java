package wjoin.lines;

import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.util.Arrays;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A line of JSON that is simple: one object with no escapes, and with plain values, each once, under the names
 * of columns. What is under other names is passed over, also objects and arrays.
 */
final class JsonLine implements Rows.Simple {
  /** With fewer bytes none of Jackson's limits of names and strings is met. */
  private static final int MOST_BYTES = 50_000;

  /** Jackson makes a number of 32 bits of a longer one by way of one of 64 bits, and rounds twice. */
  private static final int MOST_SINGLE_BYTES = 18;

  private static final int NOWHERE = -1;

  private final JsonText text = new JsonText();
  /** For each column its name in a line, and the forms of its values in quotes and of others; null: none. */
  private final byte[][] names;
  private final Form[] quoted;
  private final Form[] bare;
  /** Whether the line has the column. */
  private final boolean[] found;
  /** The column behind the one that was found last. */
  private int next;

  /** {@code corrupt}: the name of the column that lines do not have. */
  JsonLine(StructType wanted, String corrupt, ZoneId zone) {
    int count = wanted.length();
    names = new byte[count][];
    quoted = new Form[count];
    bare = new Form[count];
    found = new boolean[count];
    for (int n = 0; n < count; n++) {
      StructField field = wanted.fields()[n];
      DataType type = field.dataType();
      Form form = Form.of(type, zone);
      names[n] = field.name().equals(corrupt) ? null : field.name().getBytes(StandardCharsets.UTF_8);
      boolean isQuoted = type.equals(DataTypes.StringType) || Form.isMoment(type);
      quoted[n] = isQuoted || type instanceof DecimalType ? form : null;
      bare[n] = isQuoted ? null : type.equals(DataTypes.FloatType) ? single(form) : form;
    }
  }

  private static Form single(Form form) {
    return (line, start, end, to, at) ->
        end - start <= MOST_SINGLE_BYTES && form.put(line, start, end, to, at);
  }

  @Override
  public boolean put(byte[] line, int length, WritableColumnVector[] to, int at) {
    text.start(line, length);
    next = 0;
    Arrays.fill(found, false);
    if (length > MOST_BYTES || !text.passed('{') || !members(line, to, at) || !text.isEnd()) {
      return false;
    }
    for (int n = 0; n < found.length; n++) {
      if (!found[n]) {
        to[n].putNull(at);
      }
    }
    return true;
  }

  private boolean members(byte[] line, WritableColumnVector[] to, int at) {
    if (text.passed('}')) {
      return true;
    }
    do {
      int start = text.place() + 1;
      if (!text.string()) {
        return false;
      }
      int column = column(line, start, text.end() - 1);
      if (!text.passed(':') || !(column == NOWHERE ? text.value() : value(line, column, to[column], at))) {
        return false;
      }
    } while (text.passed(','));
    return text.passed('}');
  }

  private int column(byte[] line, int start, int end) {
    for (int n = 0; n < names.length; n++) {
      int column = next;
      next = column + 1 == names.length ? 0 : column + 1;
      byte[] name = names[column];
      if (name != null && Arrays.equals(name, 0, name.length, line, start, end)) {
        return column;
      }
    }
    return NOWHERE;
  }

  private boolean value(byte[] line, int column, WritableColumnVector to, int at) {
    int start = text.place();
    boolean isNull = text.is('n');
    boolean isQuoted = text.is('"');
    Form form = isQuoted ? quoted[column] : bare[column];
    // Of several under a name Spark takes the last.
    if (found[column] || !isNull && form == null || !text.value()) {
      return false;
    }
    found[column] = true;
    if (isNull) {
      to.putNull(at);
      return true;
    }
    int margin = isQuoted ? 1 : 0;
    return form.put(line, start + margin, text.end() - margin, to, at);
  }
}
