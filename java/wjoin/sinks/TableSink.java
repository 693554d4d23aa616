package wjoin.sinks;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.LogicalWriteInfoImpl;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils;
import org.apache.spark.sql.execution.datasources.v2.DistributionAndOrderingUtils;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A table that takes streams, such as one of Iceberg: it gets a micro-batch as from a query of Spark's own.
 *
 * <p>It is told the query and the number of the micro-batch, by which Iceberg leaves out what it has.
 */
public final class TableSink implements Sink {
  /** The local property of a query's threads that has its identity, as StreamExecution has it. */
  private static final String QUERY = "sql.streaming.queryId";

  private final SupportsWrite table;
  private final CaseInsensitiveStringMap options;

  /** Takes a format with its options, and the schema of the rows. */
  public TableSink(
      SparkSession session, String provider, Map<String, String> given, StructType schema) {
    SQLConf settings = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
    Option<TableProvider> found = DataSource.lookupDataSourceV2(provider, settings);
    Map<String, String> all = new HashMap<>();
    if (found.isDefined()) {
      all.putAll(
          CollectionConverters.asJava(
              DataSourceV2Utils.extractSessionConfigs(found.get(), settings)));
    }
    all.putAll(given);
    options = new CaseInsensitiveStringMap(all);
    table = found.isDefined() ? table(found.get(), schema) : null;
  }

  private SupportsWrite table(TableProvider provider, StructType schema) {
    Option<StructType> known =
        provider.supportsExternalMetadata() ? Option.apply(schema) : Option.empty();
    return DataSourceV2Utils.getTableFromProvider(provider, options, known)
                instanceof SupportsWrite found
            && found.capabilities().contains(TableCapability.STREAMING_WRITE)
        ? found
        : null;
  }

  /** Whether the format has tables that take streams. */
  public boolean takesStreams() {
    return table != null;
  }

  @Override
  @SuppressWarnings("deprecation") // Spark's own streams write so.
  public void addBatch(long number, Dataset<Row> rows) {
    org.apache.spark.sql.classic.Dataset<Row> given =
        (org.apache.spark.sql.classic.Dataset<Row>) rows;
    String query = given.sparkSession().sparkContext().getLocalProperty(QUERY);
    LogicalWriteInfo told =
        new LogicalWriteInfoImpl(query, rows.schema(), options, Optional.empty(), Optional.empty());
    Write write = table.newWriteBuilder(told).build();
    LogicalPlan placed =
        DistributionAndOrderingUtils.prepareQuery(write, given.logicalPlan(), Option.empty());
    Seq<CustomMetric> metrics =
        CollectionConverters.asScala(List.of(write.supportedCustomMetrics())).toSeq();
    MicroBatchWrite batch = new MicroBatchWrite(number, write.toStreaming());
    WriteToDataSourceV2 writing = new WriteToDataSourceV2(Option.empty(), batch, placed, metrics);
    org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(given.sparkSession(), writing).collect();
  }

  // What Scala would make for the trait.

  @Override
  public String name() {
    return table.name();
  }
}
