package io.icebergcrypto.catalog;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableOperations;

/** A table of the catalog behind with other operations: Iceberg 1.11 has nothing else in it. */
abstract class DecoratedTable extends BaseTable {
  private static final long serialVersionUID = 1L;

  DecoratedTable(TableOperations ops, BaseTable delegate, String name) {
    super(ops, name, delegate.reporter());
  }
}
