package wjoin.lines;

import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.collection.AbstractIterator;

/** Rows of a file as batches of columns. As with Spark's own formats a batch is the same object each time. */
final class Batches extends AbstractIterator<ColumnarBatch> {
  private static final int MOST_ROWS = 4096;
  private static final long MOST_BYTES = 1 << 22;

  private final Rows rows;
  private final OnHeapColumnVector[] columns;
  private final ColumnarBatch batch;
  private Exception failure;
  private boolean isFilled;

  /** {@code values}: those of the columns that are the file's folders. */
  Batches(Rows rows, StructType schema, StructType folders, InternalRow values) {
    this.rows = rows;
    columns = OnHeapColumnVector.allocateColumns(MOST_ROWS, schema);
    ColumnVector[] all = new ColumnVector[columns.length + folders.length()];
    System.arraycopy(columns, 0, all, 0, columns.length);
    for (int n = 0; n < folders.length(); n++) {
      ConstantColumnVector same = new ConstantColumnVector(MOST_ROWS, folders.fields()[n].dataType());
      ColumnVectorUtils.populate(same, values, n);
      all[columns.length + n] = same;
    }
    batch = new ColumnarBatch(all);
  }

  @Override
  public boolean hasNext() {
    if (!isFilled) {
      fill();
      isFilled = batch.numRows() > 0;
    }
    return isFilled;
  }

  @Override
  public ColumnarBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    isFilled = false;
    return batch;
  }

  private void fill() {
    if (failure != null) {
      Platform.throwException(failure);
    }
    for (WritableColumnVector each : columns) {
      each.reset();
    }
    int count = 0;
    long end = rows.bytes() + MOST_BYTES;
    try {
      while (count < MOST_ROWS && rows.bytes() < end && rows.next(columns, count)) {
        count++;
      }
    } catch (Exception stopped) {
      // The rows before it come first, as from Spark: it may go on with the next file.
      failure = stopped;
    }
    if (count == 0 && failure != null) {
      // Spark tells faults of files by their class; Scala does not declare them.
      Platform.throwException(failure);
    }
    batch.setNumRows(count);
  }
}
