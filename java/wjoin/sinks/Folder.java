package wjoin.sinks;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.WriteJobDescription;
import org.apache.spark.sql.execution.datasources.WriteJobStatsTracker;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A sink of Spark's that is a folder of files, of which those count that its log names.
 *
 * <p>Spark writes one such sink in a job. Several in one job need what Spark's sink does in parts.
 */
final class Folder {
  private final Object log;
  private final FileFormat format;
  private final Path path;
  private final Map<String, String> options;
  private final Job job;

  private Folder(Sink sink) throws ReflectiveOperationException, IOException {
    this.log = part(sink, "fileLog");
    this.format = (FileFormat) part(sink, "fileFormat");
    this.path = (Path) part(sink, "basePath");
    this.options = strings(part(sink, "options"));
    this.job = Job.getInstance((Configuration) part(sink, "hadoopConf"));
    job.setOutputKeyClass(Void.class);
    job.setOutputValueClass(InternalRow.class);
    FileOutputFormat.setOutputPath(job, path);
  }

  /** Return a sink as a folder, nothing for another, or one with partitions: their rows must be sorted. */
  static Optional<Folder> of(Sink sink) throws ReflectiveOperationException, IOException {
    // Its package is another from Spark 4.1 on.
    if (sink == null
        || !sink.getClass().getSimpleName().equals("FileStreamSink")
        || !((Seq<?>) part(sink, "partitionColumnNames")).isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(new Folder(sink));
  }

  /** Whether the log has a micro-batch, or a later one. */
  boolean has(long number) throws ReflectiveOperationException {
    Option<?> latest = (Option<?>) log.getClass().getMethod("getLatestBatchId").invoke(log);
    return latest.isDefined() && (Long) latest.get() >= number;
  }

  /** Return what writes the rows of a sink in tasks, nothing where Spark makes them of more than a row each. */
  Optional<FolderWriter> writer(String name, Dataset<Row> rows, LogicalPlan made) throws IOException {
    QueryExecution execution =
        ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution();
    Seq<Attribute> columns = execution.analyzed().output();
    StructType schema = DataTypeUtils.fromAttributes(columns);
    for (StructField each : schema.fields()) {
      if (!format.supportDataType(each.dataType()) || !format.supportFieldName(each.name())) {
        return Optional.empty();
      }
    }
    Optional<ByRow> byRow = ByRow.of(execution, made);
    return byRow.isEmpty()
        ? Optional.empty()
        : Optional.of(new FolderWriter(name, byRow.get(), description(rows, columns, schema)));
  }

  /** Begin the files of a micro-batch. */
  Files begin(long number) throws ReflectiveOperationException {
    return new Files(number);
  }

  private WriteJobDescription description(
      Dataset<Row> rows, Seq<Attribute> columns, StructType schema) throws IOException {
    SQLConf conf = ((org.apache.spark.sql.classic.SparkSession) rows.sparkSession()).sessionState().conf();
    Map<String, String> given = CaseInsensitiveMap$.MODULE$.apply(options);
    OutputWriterFactory factory = format.prepareWrite(rows.sparkSession(), job, given, schema);
    Option<String> most = given.get("maxRecordsPerFile");
    Option<String> zone = given.get("timeZone");
    return new WriteJobDescription(
        UUID.randomUUID().toString(),
        new SerializableConfiguration(job.getConfiguration()),
        factory,
        columns,
        columns,
        CollectionConverters.asScala(List.<Attribute>of()).toSeq(),
        Option.empty(),
        path.toString(),
        Map$.MODULE$.empty(),
        most.isDefined() ? Long.parseLong(most.get()) : conf.maxRecordsPerFile(),
        zone.isDefined() ? zone.get() : conf.sessionLocalTimeZone(),
        CollectionConverters.asScala(List.<WriteJobStatsTracker>of()).toSeq());
  }

  private static Object part(Sink sink, String name) throws ReflectiveOperationException {
    Field field = sink.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(sink);
  }

  @SuppressWarnings("unchecked") // Spark's own field has the type.
  private static Map<String, String> strings(Object map) {
    return (Map<String, String>) map;
  }

  /** The files of a micro-batch, which count from the commit on. */
  final class Files {
    private final ManifestFileCommitProtocol protocol;

    private Files(long number) throws ReflectiveOperationException {
      protocol = new ManifestFileCommitProtocol(Long.toString(number), path.toString());
      for (Method each : ManifestFileCommitProtocol.class.getMethods()) {
        if (each.getName().equals("setupManifestOptions")) {
          each.invoke(protocol, log, number);
        }
      }
      protocol.setupJob(job);
    }

    /** Take note of the files of a task, which an abort deletes. */
    void written(TaskCommitMessage files) {
      protocol.onTaskCommit(files);
    }

    /** Let the files of all tasks count; if that fails, none is left. */
    void commit(List<TaskCommitMessage> files) {
      boolean ended = false;
      try {
        protocol.commitJob(job, CollectionConverters.asScala(files).toSeq());
        ended = true;
      } finally {
        if (!ended) {
          abort();
        }
      }
    }

    void abort() {
      protocol.abortJob(job);
    }
  }
}
