package wjoin.columns;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The blocks of batches of columns. */
final class CopiedBlocks extends Blocks {
  private static final int FIRST_ROWS = 64;

  private final Layout layout;
  private final Iterator<ColumnarBatch> batches;
  private final VectorSchemaRoot copied;
  private final ArrowWriter computed;
  private final UnsafeProjection projection;
  private final VectorSchemaRoot all;
  private ColumnarBatch batch;
  private int rows;
  private int next;
  private int most = FIRST_ROWS;

  CopiedBlocks(Layout layout, Iterator<ColumnarBatch> batches) {
    this.layout = layout;
    this.batches = batches;
    copied = writer(layout.part(false), layout).root();
    computed = writer(layout.part(true), layout);
    projection =
        layout.computed().isEmpty() ? null : UnsafeProjection.create(layout.computed(), layout.input());
    Iterator<FieldVector> copies = copied.getFieldVectors().iterator();
    Iterator<FieldVector> results = computed.root().getFieldVectors().iterator();
    List<FieldVector> vectors = new ArrayList<>();
    for (int place : layout.copied()) {
      vectors.add(place < 0 ? results.next() : copies.next());
    }
    all = new VectorSchemaRoot(vectors);
    closedAtEnd(all);
  }

  @Override
  protected boolean hasMore() {
    // Spark fills the same batch again, so its rows are counted when it comes.
    while (next == rows) {
      if (!batches.hasNext()) {
        return false;
      }
      batch = batches.next();
      rows = batch.numRows();
      next = 0;
    }
    return true;
  }

  @Override
  protected VectorSchemaRoot some(long bytes) {
    int count = Math.min(most, rows - next);
    int vector = 0;
    for (int place : layout.copied()) {
      if (place >= 0) {
        Copies.copy(batch.column(place), next, count, copied.getVector(vector++));
      }
    }
    if (projection != null) {
      computed.reset();
      for (int n = 0; n < count; n++) {
        computed.write(projection.apply(batch.getRow(next + n)));
      }
      computed.finish();
    }
    all.setRowCount(count);
    next += count;
    long size = 0;
    for (FieldVector each : all.getFieldVectors()) {
      size += each.getBufferSize();
    }
    most = (int) Math.max(1, Math.min(Integer.MAX_VALUE, bytes * count / Math.max(1, size)));
    return all;
  }
}
