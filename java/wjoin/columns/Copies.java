package wjoin.columns;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BitVectorHelper;
import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
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
  private static final byte ALL_SET = (byte) 0xFF;

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
    boolean[] missing = from.hasNull() ? missing(from, start, count) : null;
    if (to instanceof BaseFixedWidthVector fixed) {
      fixed.allocateNew(count);
      DataType type = from.dataType();
      ByteBuffer data = fixed.getDataBuffer().nioBuffer(0, count * width(type));
      // Other vectors than Spark's own may refuse to tell a value that is missing.
      boolean singly = missing != null && !(from instanceof WritableColumnVector);
      values(from, start, count, singly ? missing : null, type, data.order(ByteOrder.LITTLE_ENDIAN));
    } else {
      bytes(from, start, count, missing, (BaseVariableWidthVector) to);
    }
    validity(to.getValidityBuffer(), missing, count);
    to.setValueCount(count);
  }

  private static boolean[] missing(ColumnVector from, int start, int count) {
    boolean[] missing = new boolean[count];
    for (int n = 0; n < count; n++) {
      missing[n] = from.isNullAt(start + n);
    }
    return missing;
  }

  private static void validity(ArrowBuf bits, boolean[] missing, int count) {
    if (missing == null) {
      for (int n = 0; n < (count + 7) / 8; n++) {
        bits.setByte(n, ALL_SET);
      }
      return;
    }
    bits.setZero(0, (count + 7) / 8);
    for (int n = 0; n < count; n++) {
      if (!missing[n]) {
        BitVectorHelper.setBit(bits, n);
      }
    }
  }

  private static void values(
      ColumnVector from, int start, int count, boolean[] missing, DataType type, ByteBuffer to) {
    if (type instanceof DoubleType) {
      if (missing == null) {
        to.asDoubleBuffer().put(from.getDoubles(start, count));
        return;
      }
      for (int n = 0; n < count; n++) {
        to.putDouble(missing[n] ? 0 : from.getDouble(start + n));
      }
    } else if (type instanceof FloatType) {
      if (missing == null) {
        to.asFloatBuffer().put(from.getFloats(start, count));
        return;
      }
      for (int n = 0; n < count; n++) {
        to.putFloat(missing[n] ? 0 : from.getFloat(start + n));
      }
    } else if (width(type) == Long.BYTES) {
      if (missing == null) {
        to.asLongBuffer().put(from.getLongs(start, count));
        return;
      }
      for (int n = 0; n < count; n++) {
        to.putLong(missing[n] ? 0 : from.getLong(start + n));
      }
    } else if (width(type) == Integer.BYTES) {
      if (missing == null) {
        to.asIntBuffer().put(from.getInts(start, count));
        return;
      }
      for (int n = 0; n < count; n++) {
        to.putInt(missing[n] ? 0 : from.getInt(start + n));
      }
    } else if (width(type) == Short.BYTES) {
      for (int n = 0; n < count; n++) {
        to.putShort(missing != null && missing[n] ? 0 : from.getShort(start + n));
      }
    } else {
      for (int n = 0; n < count; n++) {
        to.put(missing != null && missing[n] ? 0 : from.getByte(start + n));
      }
    }
  }

  private static void bytes(
      ColumnVector from, int start, int count, boolean[] missing, BaseVariableWidthVector to) {
    boolean text = from.dataType() instanceof StringType;
    UTF8String[] values = new UTF8String[count];
    long size = 0;
    for (int n = 0; n < count; n++) {
      if (missing == null || !missing[n]) {
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
