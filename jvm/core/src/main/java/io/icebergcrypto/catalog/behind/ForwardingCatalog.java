package io.icebergcrypto.catalog.behind;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.catalog.ViewCatalog;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.view.View;
import org.apache.iceberg.view.ViewBuilder;

/**
 * Hands each call to the catalog behind: namespaces, views and what else encryption does not
 * change. Iceberg's default methods do more than that, so all are overridden.
 */
public abstract class ForwardingCatalog
    implements Catalog, SupportsNamespaces, ViewCatalog, Closeable {
  /** The catalog behind. */
  public abstract Catalog delegate();

  /** A table that the catalog behind loads, decorated. */
  protected abstract Table decorated(TableIdentifier identifier, Supplier<Table> behind);

  /** A view that the catalog behind loads, with errors that name it. */
  protected abstract View named(TableIdentifier identifier, Supplier<View> behind);

  @Override
  public abstract void initialize(String name, Map<String, String> properties);

  @Override
  public String name() {
    return delegate().name();
  }

  @Override
  public List<TableIdentifier> listTables(Namespace namespace) {
    return delegate().listTables(namespace);
  }

  @Override
  public boolean tableExists(TableIdentifier identifier) {
    return delegate().tableExists(identifier);
  }

  @Override
  public void invalidateTable(TableIdentifier identifier) {
    delegate().invalidateTable(identifier);
  }

  @Override
  public void renameTable(TableIdentifier from, TableIdentifier to) {
    delegate().renameTable(from, to);
  }

  private SupportsNamespaces namespaces() {
    if (delegate() instanceof SupportsNamespaces catalog) {
      return catalog;
    }

    throw new UnsupportedOperationException(
        "Namespaces are not supported by catalog: " + delegate().name());
  }

  @Override
  public void createNamespace(Namespace namespace) {
    namespaces().createNamespace(namespace);
  }

  @Override
  public List<Namespace> listNamespaces() {
    return namespaces().listNamespaces();
  }

  @Override
  public List<Namespace> listNamespaces(Namespace namespace) throws NoSuchNamespaceException {
    return namespaces().listNamespaces(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(Namespace namespace)
      throws NoSuchNamespaceException {
    return namespaces().loadNamespaceMetadata(namespace);
  }

  @Override
  public boolean dropNamespace(Namespace namespace) {
    return namespaces().dropNamespace(namespace);
  }

  @Override
  public boolean removeProperties(Namespace namespace, Set<String> names)
      throws NoSuchNamespaceException {
    return namespaces().removeProperties(namespace, names);
  }

  @Override
  public boolean namespaceExists(Namespace namespace) {
    return namespaces().namespaceExists(namespace);
  }

  @Override
  public List<TableIdentifier> listViews(Namespace namespace) {
    return delegate() instanceof ViewCatalog views ? views.listViews(namespace) : List.of();
  }

  @Override
  public boolean viewExists(TableIdentifier identifier) {
    return delegate() instanceof ViewCatalog views && views.viewExists(identifier);
  }

  @Override
  public ViewBuilder buildView(TableIdentifier identifier) {
    return views().buildView(identifier);
  }

  @Override
  public boolean dropView(TableIdentifier identifier) {
    return delegate() instanceof ViewCatalog views && views.dropView(identifier);
  }

  @Override
  public void renameView(TableIdentifier from, TableIdentifier to) {
    viewsFor(from).renameView(from, to);
  }

  @Override
  public void invalidateView(TableIdentifier identifier) {
    if (delegate() instanceof ViewCatalog views) {
      views.invalidateView(identifier);
    }
  }

  @Override
  public View registerView(TableIdentifier identifier, String metadataFileLocation) {
    return views().registerView(identifier, metadataFileLocation);
  }

  private ViewCatalog views() {
    if (delegate() instanceof ViewCatalog views) {
      return views;
    }

    throw new UnsupportedOperationException(
        "Views are not supported by catalog: " + delegate().name());
  }

  final ViewCatalog viewsFor(TableIdentifier identifier) {
    if (delegate() instanceof ViewCatalog views) {
      return views;
    }

    throw new NoSuchViewException("View does not exist: %s", identifier);
  }

  @Override
  public void createNamespace(Namespace namespace, Map<String, String> metadata) {
    namespaces().createNamespace(namespace, metadata);
  }

  @Override
  public boolean setProperties(Namespace namespace, Map<String, String> newProperties)
      throws NoSuchNamespaceException {
    return namespaces().setProperties(namespace, newProperties);
  }

  @Override
  public View loadView(TableIdentifier identifier) {
    return viewsFor(identifier).loadView(identifier);
  }

  @Override
  public void close() throws IOException {
    if (delegate() instanceof Closeable closeable) {
      closeable.close();
    }
  }
}
