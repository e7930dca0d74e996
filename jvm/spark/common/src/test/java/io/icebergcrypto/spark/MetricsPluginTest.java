package io.icebergcrypto.spark;

import static org.assertj.core.api.Assertions.assertThat;

import com.codahale.metrics.MetricRegistry;
import io.icebergcrypto.io.stream.FileMetrics;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.testing.Stub;
import java.util.Map;
import org.apache.spark.api.plugin.PluginContext;
import org.junit.jupiter.api.Test;

/**
 * What Spark's metrics system gets; tests/catalog/proof/test_metrics.py has it in a real session.
 */
class MetricsPluginTest {
  private final MetricRegistry registry = new MetricRegistry();
  private final PluginContext context =
      Stub.of(
          PluginContext.class,
          (proxy, method, arguments) -> {
            assertThat(method.getName()).isEqualTo("metricRegistry");
            return registry;
          });

  @Test
  void driverAndExecutorsCountCallsAndFiles() {
    for (boolean driver : new boolean[] {true, false}) {
      registry.removeMatching((name, metric) -> true);
      if (driver) {
        new MetricsPlugin().driverPlugin().registerMetrics("app", context);
      } else {
        new MetricsPlugin().executorPlugin().init(context, Map.of());
      }

      assertThat(registry.getGauges())
          .containsOnlyKeys(
              "kms.wrap_calls",
              "kms.unwrap_calls",
              "kms.hits",
              "kms.misses",
              "kms.errors",
              "kms.retries",
              "kms.wrap_ms",
              "kms.unwrap_ms",
              "files.encrypted",
              "files.decrypted",
              "files.stream_bytes_encrypted",
              "files.stream_bytes_decrypted",
              "files.parquet_bytes_opened",
              "files.bytes_written");
      long calls = value("kms.wrap_calls");
      long files = value("files.encrypted");
      new KmsMetrics().wrapped(1); // of any catalog
      FileMetrics.encrypted();
      assertThat(value("kms.wrap_calls")).isGreaterThan(calls);
      assertThat(value("files.encrypted")).isGreaterThan(files);
    }
  }

  private long value(String name) {
    return (long) registry.getGauges().get(name).getValue();
  }
}
