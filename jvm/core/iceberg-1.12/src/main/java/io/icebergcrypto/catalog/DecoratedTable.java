package io.icebergcrypto.catalog;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableOperations;

/**
 * A table of the catalog behind with other operations: its labels, which Iceberg 1.12 has, stay.
 */
abstract class DecoratedTable extends BaseTable {
  private static final long serialVersionUID = 1L;

  DecoratedTable(TableOperations ops, BaseTable delegate, String name) {
    super(ops, name, delegate.reporter(), delegate.labels());
  }
}
