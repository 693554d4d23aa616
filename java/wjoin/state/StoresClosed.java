package wjoin.state;

import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.sql.execution.streaming.state.StateStore;

/**
 * Closes the state of streaming queries with the application.
 *
 * <p>Spark leaves it open. A process that ends while RocksDB compacts then never ends: its exit waits for the
 * thread that compacts, which waits for the Java machine to write its log.
 */
public final class StoresClosed implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return null;
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      @Override
      public void shutdown() {
        StateStore.stop();
      }
    };
  }
}
