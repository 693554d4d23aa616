package wjoin.columns;

import java.util.Iterator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;

/** The blocks of rows. */
final class WrittenBlocks extends Blocks {
  /** Taken for the bytes of a row that does not tell. */
  private static final int UNKNOWN_BYTES = 1 << 11;

  private final Iterator<InternalRow> rows;
  private final ArrowWriter writer;

  WrittenBlocks(Layout layout, Iterator<InternalRow> rows) {
    this.rows = rows;
    writer = writer(layout.schema(), layout);
    closedAtEnd(writer.root());
  }

  @Override
  protected boolean hasMore() {
    return rows.hasNext();
  }

  @Override
  protected VectorSchemaRoot some(long bytes) {
    writer.reset();
    long size = 0;
    while (size < bytes && rows.hasNext()) {
      InternalRow row = rows.next();
      writer.write(row);
      size += row instanceof UnsafeRow unsafe ? unsafe.getSizeInBytes() : UNKNOWN_BYTES;
    }
    writer.finish();
    return writer.root();
  }
}
