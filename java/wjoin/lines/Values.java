package wjoin.lines;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/** Puts rows that Spark has made into columns. */
final class Values {
  private final DataType[] types;

  Values(StructType schema) {
    types = new DataType[schema.length()];
    for (int n = 0; n < types.length; n++) {
      types[n] = schema.fields()[n].dataType();
    }
  }

  /** Put a row at a place. */
  void put(InternalRow row, WritableColumnVector[] to, int at) {
    for (int n = 0; n < types.length; n++) {
      if (row.isNullAt(n)) {
        to[n].putNull(at);
      } else {
        put(row, n, to[n], at);
      }
    }
  }

  private void put(InternalRow row, int n, WritableColumnVector to, int at) {
    DataType type = types[n];
    if (type instanceof StringType) {
      to.putByteArray(at, row.getUTF8String(n).getBytes());
    } else if (type instanceof DoubleType) {
      to.putDouble(at, row.getDouble(n));
    } else if (type instanceof IntegerType || type instanceof DateType) {
      to.putInt(at, row.getInt(n));
    } else if (type instanceof BooleanType) {
      to.putBoolean(at, row.getBoolean(n));
    } else if (type instanceof FloatType) {
      to.putFloat(at, row.getFloat(n));
    } else if (type instanceof ShortType) {
      to.putShort(at, row.getShort(n));
    } else if (type instanceof ByteType) {
      to.putByte(at, row.getByte(n));
    } else if (type instanceof DecimalType decimal) {
      to.putDecimal(at, row.getDecimal(n, decimal.precision(), decimal.scale()), decimal.precision());
    } else {
      to.putLong(at, row.getLong(n));
    }
  }
}
