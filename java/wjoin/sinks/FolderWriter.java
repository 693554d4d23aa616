package wjoin.sinks;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.execution.datasources.FileFormatDataWriter;
import org.apache.spark.sql.execution.datasources.SingleDirectoryDataWriter;
import org.apache.spark.sql.execution.datasources.SingleDirectoryDataWriter$;
import org.apache.spark.sql.execution.datasources.WriteJobDescription;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;

/** How a task writes the rows of a sink that is a folder of files. */
record FolderWriter(String name, ByRow rows, WriteJobDescription files) implements Serializable {
  /** Begin to write the rows of a task for micro-batch {@code number}. */
  Part part(long number, TaskContext task) {
    return new Part(number, task);
  }

  /** The files of a task. */
  final class Part {
    private final FileCommitProtocol protocol;
    private final TaskAttemptContext attempt;
    private final BasePredicate condition;
    private final UnsafeProjection columns;
    private FileFormatDataWriter writer;

    private Part(long number, TaskContext task) {
      protocol = new ManifestFileCommitProtocol(Long.toString(number), files.path());
      TaskID id = new TaskID(new JobID("wjoin", task.stageId()), TaskType.MAP, task.partitionId());
      TaskAttemptID attemptId = new TaskAttemptID(id, task.attemptNumber());
      attempt = new TaskAttemptContextImpl(files.serializableHadoopConf().value(), attemptId);
      Configuration own = attempt.getConfiguration();
      own.set("mapreduce.job.id", id.getJobID().toString());
      own.set("mapreduce.task.id", id.toString());
      own.set("mapreduce.task.attempt.id", attemptId.toString());
      own.setBoolean("mapreduce.task.ismap", true);
      own.setInt("mapreduce.task.partition", 0);
      protocol.setupTask(attempt);
      condition = rows.condition() == null ? null : Predicate$.MODULE$.create(rows.condition(), rows.given());
      columns = UnsafeProjection$.MODULE$.create(rows.columns(), rows.given());
      if (condition != null) {
        condition.initialize(task.partitionId());
      }
      columns.initialize(task.partitionId());
      if (task.partitionId() == 0) {
        // A file without rows has the columns, as of any query.
        writer = opened();
      }
    }

    void write(InternalRow row) {
      if (condition == null || condition.eval(row)) {
        if (writer == null) {
          writer = opened();
        }
        writer.write(columns.apply(row));
      }
    }

    TaskCommitMessage commit() {
      return writer == null ? protocol.commitTask(attempt) : writer.commit().commitMsg();
    }

    /** Delete what is written; what goes wrong here is told with what {@code failed}. */
    void abort(Throwable failed) {
      try {
        if (writer == null) {
          protocol.abortTask(attempt);
        } else {
          writer.abort();
        }
      } catch (Exception also) {
        failed.addSuppressed(also);
      }
    }

    void close() {
      if (writer != null) {
        writer.close();
      }
    }

    private FileFormatDataWriter opened() {
      return new SingleDirectoryDataWriter(
          files, attempt, protocol, SingleDirectoryDataWriter$.MODULE$.$lessinit$greater$default$4());
    }
  }
}
