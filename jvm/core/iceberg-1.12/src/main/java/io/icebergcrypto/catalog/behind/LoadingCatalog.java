package io.icebergcrypto.catalog.behind;

import java.util.function.Supplier;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.LoadContext;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.view.View;

/** The forms of loading that Iceberg 1.12 has beside those of 1.11: with a context. */
public abstract class LoadingCatalog extends ForwardingCatalog {
  /** A table that the catalog behind loads, decorated. */
  protected abstract Table decorated(TableIdentifier identifier, Supplier<Table> behind);

  /** A view that the catalog behind loads, with errors that name it. */
  protected abstract View named(TableIdentifier identifier, Supplier<View> behind);

  @Override
  public final Table loadTable(TableIdentifier identifier, LoadContext how) {
    return decorated(identifier, () -> delegate().loadTable(identifier, how));
  }

  @Override
  public final View loadView(TableIdentifier identifier, LoadContext how) {
    return named(identifier, () -> viewsFor(identifier).loadView(identifier, how));
  }
}
