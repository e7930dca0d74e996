package io.icebergcrypto.catalog.behind;

import java.util.function.Supplier;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.view.View;

/** Iceberg 1.11 loads by identifier alone; later versions have further forms, which are here. */
public abstract class LoadingCatalog extends ForwardingCatalog {
  /** A table that the catalog behind loads, decorated. */
  protected abstract Table decorated(TableIdentifier identifier, Supplier<Table> behind);

  /** A view that the catalog behind loads, with errors that name it. */
  protected abstract View named(TableIdentifier identifier, Supplier<View> behind);
}
