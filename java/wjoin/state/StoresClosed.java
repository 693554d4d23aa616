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
 *
 * <p>Spark 4.0 holds a lock while it closes the state, and waits for its maintenance, which may wait for that
 * lock: five minutes. So the end of the application waits for ten seconds at most.
 */
public final class StoresClosed implements SparkPlugin {
  private static final long MOST_MILLISECONDS = 10_000;

  @Override
  public DriverPlugin driverPlugin() {
    return null;
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      @Override
      public void shutdown() {
        Thread closing = new Thread(StateStore::stop, "wjoin-stores-closed");
        closing.setDaemon(true);
        closing.start();
        try {
          closing.join(MOST_MILLISECONDS);
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    };
  }
}
