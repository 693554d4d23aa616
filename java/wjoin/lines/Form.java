package wjoin.lines;

import java.time.ZoneId;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/** The plain forms of the values of a type: those of which Spark makes the same. */
interface Form {
  /** Put the value of bytes at a place; of a number one byte at least. Return false where their form is another. */
  boolean put(byte[] line, int start, int end, WritableColumnVector to, int at);

  /** Return the form of a type, null where there is none. {@code zone}: of a TIMESTAMP that names none. */
  static Form of(DataType type, ZoneId zone) {
    if (type.equals(DataTypes.StringType)) {
      return (line, start, end, to, at) -> {
        to.putByteArray(at, line, start, end - start);
        return true;
      };
    }
    if (type.equals(DataTypes.BooleanType)) {
      return (line, start, end, to, at) -> {
        boolean isTrue = Numbers.isWord("true", line, start, end);
        to.putBoolean(at, isTrue);
        return isTrue || Numbers.isWord("false", line, start, end);
      };
    }
    return isMoment(type) ? moment(type, zone) : number(type);
  }

  /** Return whether the values of a type are dates or times. */
  static boolean isMoment(DataType type) {
    return type.equals(DataTypes.TimestampType)
        || type.equals(DataTypes.TimestampNTZType)
        || type.equals(DataTypes.DateType);
  }

  private static Form moment(DataType type, ZoneId zone) {
    Moments moments = new Moments(zone);
    if (type.equals(DataTypes.DateType)) {
      return (line, start, end, to, at) -> {
        int day = end - start == Moments.DATE_BYTES ? moments.day(line, start) : Moments.NO_DAY;
        to.putInt(at, day);
        return day != Moments.NO_DAY;
      };
    }
    boolean hasZone = type.equals(DataTypes.TimestampType);
    return (line, start, end, to, at) -> {
      long micros = hasZone ? moments.instant(line, start, end) : moments.local(line, start, end);
      to.putLong(at, micros);
      return micros != Moments.NONE;
    };
  }

  private static Form number(DataType type) {
    if (type.equals(DataTypes.DoubleType)) {
      return (line, start, end, to, at) -> {
        double value = Numbers.real(line, start, end);
        to.putDouble(at, value);
        return !Double.isNaN(value);
      };
    }
    if (type.equals(DataTypes.FloatType)) {
      return (line, start, end, to, at) -> {
        float value = Numbers.single(line, start, end);
        to.putFloat(at, value);
        return !Float.isNaN(value);
      };
    }
    if (type instanceof DecimalType decimal) {
      return (line, start, end, to, at) -> {
        Decimal value = Numbers.decimal(line, start, end, decimal);
        if (value != null) {
          to.putDecimal(at, value, decimal.precision());
        }
        return value != null;
      };
    }
    return whole(type);
  }

  private static Form whole(DataType type) {
    if (type.equals(DataTypes.LongType)) {
      return (line, start, end, to, at) -> {
        long value = Numbers.whole(line, start, end);
        to.putLong(at, value);
        return value != Numbers.NONE;
      };
    }
    if (type.equals(DataTypes.IntegerType)) {
      return (line, start, end, to, at) -> {
        long value = Numbers.whole(line, start, end);
        to.putInt(at, (int) value);
        return value == (int) value;
      };
    }
    if (type.equals(DataTypes.ShortType)) {
      return (line, start, end, to, at) -> {
        long value = Numbers.whole(line, start, end);
        to.putShort(at, (short) value);
        return value == (short) value;
      };
    }
    if (type.equals(DataTypes.ByteType)) {
      return (line, start, end, to, at) -> {
        long value = Numbers.whole(line, start, end);
        to.putByte(at, (byte) value);
        return value == (byte) value;
      };
    }
    return null;
  }
}
