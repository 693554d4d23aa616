package wjoin.columns;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BitVectorHelper;
import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Copies of Spark's columns as columns of Arrow. */
final class Copies {
  private static final int OFFSET_BYTES = 4;

  private Copies() {}

  /** Return whether columns of a type are copied. {@code large}: strings and binaries have 64-bit offsets. */
  static boolean of(DataType type, boolean large) {
    return type instanceof StringType || type instanceof BinaryType ? !large : width(type) > 0;
  }

  /** Return the bytes of a value, 0 where they are not those that Arrow has, or their number varies. */
  private static int width(DataType type) {
    if (type instanceof LongType
        || type instanceof DoubleType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType
        || type instanceof DayTimeIntervalType) {
      return Long.BYTES;
    }
    if (type instanceof IntegerType || type instanceof FloatType || type instanceof DateType) {
      return Integer.BYTES;
    }
    return type instanceof ShortType ? Short.BYTES : type instanceof ByteType ? Byte.BYTES : 0;
  }

  /** Copy some rows of a column. */
  static void copy(ColumnVector from, int start, int count, FieldVector to) {
    boolean[] missing = from.hasNull() ? missing(from, start, count) : new boolean[count];
    if (to instanceof BaseFixedWidthVector fixed) {
      values(from, start, missing, fixed);
    } else {
      bytes(from, start, missing, (BaseVariableWidthVector) to);
    }
    ArrowBuf validity = to.getValidityBuffer();
    validity.setOne(0L, (count + 7L) / 8);
    for (int n = 0; n < count; n++) {
      if (missing[n]) {
        BitVectorHelper.unsetBit(validity, n);
      }
    }
    to.setValueCount(count);
  }

  private static boolean[] missing(ColumnVector from, int start, int count) {
    boolean[] missing = new boolean[count];
    for (int n = 0; n < count; n++) {
      missing[n] = from.isNullAt(start + n);
    }
    return missing;
  }

  private static void values(
      ColumnVector from, int start, boolean[] missing, BaseFixedWidthVector to) {
    int count = missing.length;
    to.allocateNew(count);
    int width = width(from.dataType());
    ByteBuffer data = to.getDataBuffer().nioBuffer(0, count * width).order(ByteOrder.LITTLE_ENDIAN);
    Value value = value(from);
    for (int n = 0; n < count; n++) {
      // Some vectors refuse to tell a value that is missing.
      if (!missing[n]) {
        value.put(data, n * width, start + n);
      }
    }
  }

  /** Puts the value of a row at a place in bytes. */
  private interface Value {
    void put(ByteBuffer to, int place, int row);
  }

  private static Value value(ColumnVector from) {
    DataType type = from.dataType();
    if (type instanceof DoubleType) {
      return (to, place, row) -> to.putDouble(place, from.getDouble(row));
    }
    if (type instanceof FloatType) {
      return (to, place, row) -> to.putFloat(place, from.getFloat(row));
    }
    return switch (width(type)) {
      case Long.BYTES -> (to, place, row) -> to.putLong(place, from.getLong(row));
      case Integer.BYTES -> (to, place, row) -> to.putInt(place, from.getInt(row));
      case Short.BYTES -> (to, place, row) -> to.putShort(place, from.getShort(row));
      default -> (to, place, row) -> to.put(place, from.getByte(row));
    };
  }

  private static void bytes(
      ColumnVector from, int start, boolean[] missing, BaseVariableWidthVector to) {
    int count = missing.length;
    boolean text = from.dataType() instanceof StringType;
    UTF8String[] values = new UTF8String[count];
    long size = 0;
    for (int n = 0; n < count; n++) {
      if (!missing[n]) {
        values[n] = text
            ? from.getUTF8String(start + n)
            : UTF8String.fromBytes(from.getBinary(start + n));
        size += values[n].numBytes();
      }
    }
    to.allocateNew(size, count);
    ArrowBuf offsets = to.getOffsetBuffer();
    long address = to.getDataBuffer().memoryAddress();
    int end = 0;
    for (int n = 0; n < count; n++) {
      offsets.setInt((long) n * OFFSET_BYTES, end);
      UTF8String value = values[n];
      if (value != null) {
        int length = value.numBytes();
        Platform.copyMemory(value.getBaseObject(), value.getBaseOffset(), null, address + end, length);
        end += length;
      }
    }
    offsets.setInt((long) count * OFFSET_BYTES, end);
    to.setLastSet(count - 1);
  }
}
