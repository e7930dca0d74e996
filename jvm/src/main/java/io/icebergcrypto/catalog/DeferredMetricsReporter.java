package io.icebergcrypto.catalog;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.iceberg.metrics.MetricsReport;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * Keeps the reports of a create or replace transaction until its table is there, then hands them to
 * the reporter that the catalog behind gives that table. A catalog shows its reporter nowhere else.
 */
final class DeferredMetricsReporter implements MetricsReporter {
  private final Supplier<MetricsReporter> reporterOfTable;
  private List<MetricsReport> pending = new ArrayList<>();
  private MetricsReporter reporter;

  DeferredMetricsReporter(Supplier<MetricsReporter> reporterOfTable) {
    this.reporterOfTable = reporterOfTable;
  }

  @Override
  public synchronized void report(MetricsReport report) {
    if (reporter != null) {
      reporter.report(report);
    } else {
      pending.add(report);
    }
  }

  /** The transaction is committed: the table can be loaded. */
  synchronized void committed() {
    if (reporter == null && !pending.isEmpty()) {
      this.reporter = reporterOfTable.get();
      pending.forEach(reporter::report);
      this.pending = List.of();
    }
  }
}
