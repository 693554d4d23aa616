package wjoin.sinks;

import java.net.URISyntaxException;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;

/** One job of Spark's that writes a micro-batch into several folders. */
final class FolderJob {
  private final SparkContext context;
  private final Broadcast<byte[]> writers;

  /** Takes how the rows of each folder are written. */
  FolderJob(SparkContext context, List<FolderWriter> writers) throws URISyntaxException {
    this.context = context;
    this.writers =
        context.broadcast(FolderTask.sent(writers), ClassTag$.MODULE$.apply(byte[].class));
    // Where Spark itself does not know the classes, its executors must get them.
    if (FolderJob.class.getClassLoader().getClass() == URLClassLoader.class) {
      URLClassLoader own = (URLClassLoader) FolderJob.class.getClassLoader();
      String jar = Path.of(own.getURLs()[0].toURI()).toString();
      String name = Path.of(jar).getFileName().toString();
      if (!context.listJars().exists(each -> each.endsWith("/" + name))) {
        context.addJar(jar);
      }
    }
  }

  /**
   * Write micro-batch {@code number} by the writers {@code asked}, into {@code files} for each; return the
   * messages of the tasks for each. If it fails, no file is left.
   */
  List<List<TaskCommitMessage>> write(
      RDD<InternalRow> made, int[] asked, long number, List<Folder.Files> files) {
    List<List<TaskCommitMessage>> written = new ArrayList<>();
    files.forEach(each -> written.add(new ArrayList<>()));
    boolean ended = false;
    try {
      context.runJob(
          made,
          new FolderTask(writers, asked, number),
          (task, messages) -> {
            for (int place = 0; place < messages.length; place++) {
              files.get(place).written(messages[place]);
              written.get(place).add(messages[place]);
            }
            return BoxedUnit.UNIT;
          },
          ClassTag$.MODULE$.<TaskCommitMessage[]>apply(TaskCommitMessage[].class));
      ended = true;
      return written;
    } finally {
      if (!ended) {
        files.forEach(Folder.Files::abort);
      }
    }
  }
}
