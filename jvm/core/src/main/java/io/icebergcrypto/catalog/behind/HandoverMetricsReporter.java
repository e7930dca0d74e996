package io.icebergcrypto.catalog.behind;

import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.metrics.MetricsReport;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * Leads the catalog behind to the metrics reporter of the encrypting catalog in front of it. A
 * catalog shows its reporter only with a table, and a transaction that creates a table needs it
 * before: so both have this one instance of the class that the user named. The encrypting one
 * closes it.
 */
public final class HandoverMetricsReporter implements MetricsReporter {
  private static final String ID = "encryption.metrics-reporter.shared-id";

  private MetricsReporter reporter;

  /** Iceberg makes one by this constructor. */
  public HandoverMetricsReporter() {}

  /** What to set on the catalog behind. */
  public static Map<String, String> propertiesFor(MetricsReporter reporter) {
    return Map.of(
        CatalogProperties.METRICS_REPORTER_IMPL,
        HandoverMetricsReporter.class.getName(),
        ID,
        Handover.offer(reporter));
  }

  @Override
  public void initialize(Map<String, String> properties) {
    this.reporter = Handover.take(properties.get(ID), MetricsReporter.class);
  }

  @Override
  public void report(MetricsReport report) {
    reporter.report(report);
  }
}
