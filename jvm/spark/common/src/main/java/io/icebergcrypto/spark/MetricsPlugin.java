package io.icebergcrypto.spark;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import io.icebergcrypto.io.stream.FileMetrics;
import io.icebergcrypto.kms.call.KmsMetrics;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.util.LongAccumulator;

/**
 * Gives Spark's metrics system the counters of the driver and of each executor: what was asked of
 * the KMS ({@code kms.*}, see {@link KmsMetrics#snapshot}), and which files were encrypted and
 * decrypted ({@code files.*}, see {@link FileMetrics#snapshot}). Each is of one JVM, of all
 * catalogs and tables in it, since the JVM started. No name in them is of a table, a file or a key.
 * What single tasks did is on the pages of their stages, see {@link TaskMetrics}.
 *
 * <pre>spark.plugins=io.icebergcrypto.spark.MetricsPlugin</pre>
 */
public final class MetricsPlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      private Map<String, LongAccumulator> ofTasks;

      @Override
      public Map<String, String> init(SparkContext spark, PluginContext context) {
        this.ofTasks = TaskMetrics.registered(spark);
        return TaskMetrics.serialized(ofTasks);
      }

      @Override
      public void registerMetrics(String appId, PluginContext context) {
        register(context.metricRegistry());
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private TaskMetrics tasks;

      @Override
      public void init(PluginContext context, Map<String, String> extraConf) {
        this.tasks = new TaskMetrics(extraConf);
        register(context.metricRegistry());
      }

      @Override
      public void onTaskStart() {
        tasks.start();
      }
    };
  }

  private static void register(MetricRegistry registry) {
    register(registry, "kms", KmsMetrics.ofJvm()::snapshot);
    register(registry, "files", FileMetrics::snapshot);
  }

  private static void register(
      MetricRegistry registry, String group, Supplier<Map<String, Object>> counters) {
    for (String name : counters.get().keySet()) {
      Gauge<Object> gauge = () -> counters.get().get(name);
      registry.register(MetricRegistry.name(group, name), gauge);
    }
  }
}
