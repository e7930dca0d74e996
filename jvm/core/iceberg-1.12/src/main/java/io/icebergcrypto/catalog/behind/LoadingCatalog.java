package io.icebergcrypto.catalog.behind;

import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.LoadContext;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.view.View;

/** The forms of loading that Iceberg 1.12 has beside those of 1.11: with a context. */
public abstract class LoadingCatalog extends ForwardingCatalog {
  @Override
  public final Table loadTable(TableIdentifier identifier, LoadContext how) {
    return decorated(identifier, () -> delegate().loadTable(identifier, how));
  }

  @Override
  public final View loadView(TableIdentifier identifier, LoadContext how) {
    return named(identifier, () -> viewsFor(identifier).loadView(identifier, how));
  }
}
