package wjoin.sinks;

import java.io.Serializable;
import java.lang.ref.SoftReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.util.control.NonFatal;

/** Writes the rows of a task into folders: each row of what the query makes goes to all of them. */
final class FolderTask
    extends AbstractFunction2<TaskContext, Iterator<InternalRow>, TaskCommitMessage[]>
    implements Serializable {
  private static final long serialVersionUID = 1;

  /** The writers that this process has read, by the numbers of their broadcasts. */
  private static final Map<Long, SoftReference<FolderWriter[]>> READ = new ConcurrentHashMap<>();

  private final Broadcast<byte[]> writers;
  private final int[] asked;
  private final long number;

  /** Of the writers, as {@link #sent}, those {@code asked} write micro-batch {@code number}. */
  FolderTask(Broadcast<byte[]> writers, int[] asked, long number) {
    this.writers = writers;
    this.asked = asked;
    this.number = number;
  }

  /** Return writers as bytes, for an executor may know the classes by another loader than the driver. */
  static byte[] sent(List<FolderWriter> writers) {
    FolderWriter[] all = writers.toArray(new FolderWriter[0]);
    ByteBuffer bytes =
        SparkEnv.get().closureSerializer().newInstance().serialize(all, ClassTag$.MODULE$.apply(all.getClass()));
    byte[] found = new byte[bytes.remaining()];
    bytes.get(found);
    return found;
  }

  @Override
  public TaskCommitMessage[] apply(TaskContext task, Iterator<InternalRow> rows) {
    FolderWriter[] known = read();
    List<FolderWriter.Part> parts = new ArrayList<>();
    TaskCommitMessage[] written = new TaskCommitMessage[asked.length];
    // At which writer it is, null while the query makes rows: what fails there is told as ever.
    FolderWriter at = null;
    try {
      for (int place = 0; place < asked.length; place++) {
        at = known[asked[place]];
        parts.add(at.part(number, task));
      }
      for (at = null; rows.hasNext(); at = null) {
        InternalRow row = rows.next();
        for (int place = 0; place < asked.length; place++) {
          at = known[asked[place]];
          parts.get(place).write(row);
        }
      }
      for (int place = 0; place < asked.length; place++) {
        at = known[asked[place]];
        written[place] = parts.get(place).commit();
      }
      return written;
    } catch (Throwable failed) {
      // Scala throws what Java would have to declare, and a full disk is an Error of Hadoop's.
      parts.forEach(each -> each.abort(failed));
      if (at == null || !NonFatal.apply(failed)) {
        Platform.throwException(failed);
      }
      throw Failures.of(at.name(), failed);
    } finally {
      parts.forEach(FolderWriter.Part::close);
    }
  }

  private FolderWriter[] read() {
    SoftReference<FolderWriter[]> known = READ.get(writers.id());
    FolderWriter[] found = known == null ? null : known.get();
    if (found == null) {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      found =
          SparkEnv.get()
              .closureSerializer()
              .newInstance()
              .deserialize(
                  ByteBuffer.wrap(writers.value()), loader, ClassTag$.MODULE$.apply(FolderWriter[].class));
      READ.put(writers.id(), new SoftReference<>(found));
    }
    return found;
  }
}
