package wjoin.columns;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.spark.TaskContext;
import org.apache.spark.package$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;

/** Rows of one value each, an Arrow stream of about {@code BYTES}. */
abstract class Blocks implements Iterator<InternalRow> {
  /** A batch has at most 64 MB of them; Spark 4.0 bounds it by their number alone, which is 512. */
  private static final int BYTES =
      package$.MODULE$.SPARK_VERSION().startsWith("4.0.") ? 1 << 16 : 1 << 20;

  /** Return whether there are rows that no block has had. */
  protected abstract boolean hasMore();

  /** Return some of these rows, about so many bytes, as columns that stay until the next call. */
  protected abstract VectorSchemaRoot some(long bytes);

  @Override
  public final boolean hasNext() {
    return hasMore();
  }

  @Override
  public final InternalRow next() {
    if (!hasMore()) {
      throw new NoSuchElementException();
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(BYTES);
    WriteChannel channel = new WriteChannel(Channels.newChannel(bytes));
    try {
      boolean first = true;
      while (bytes.size() < BYTES && hasMore()) {
        VectorSchemaRoot columns = some(BYTES);
        if (first) {
          MessageSerializer.serialize(channel, columns.getSchema());
          first = false;
        }
        try (ArrowRecordBatch batch = new VectorUnloader(columns).getRecordBatch()) {
          MessageSerializer.serialize(channel, batch);
        }
      }
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return new GenericInternalRow(new Object[] {bytes.toByteArray()});
  }

  /** Return a writer of columns as Spark makes them for Python. */
  protected static ArrowWriter writer(StructType schema, Layout layout) {
    return ArrowWriter.create(schema, layout.timeZone(), false, layout.largeTypes());
  }

  /** Free the memory of columns with the task. */
  protected static void closedAtEnd(VectorSchemaRoot columns) {
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) context -> columns.close());
  }
}
