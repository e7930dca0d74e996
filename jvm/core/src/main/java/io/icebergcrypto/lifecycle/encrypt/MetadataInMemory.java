package io.icebergcrypto.lifecycle.encrypt;

import java.util.function.UnaryOperator;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * Operations on metadata that no catalog has: that of a table as it was at a time, or as it is to
 * be. A commit replaces it in memory. Files are where the table of the catalog has them.
 */
public final class MetadataInMemory implements TableOperations {
  private final TableOperations table;
  private final UnaryOperator<LocationProvider> locations;
  private TableMetadata metadata;

  /**
   * Starts with some metadata.
   *
   * @param table the operations of the catalog's table
   */
  public MetadataInMemory(TableOperations table, TableMetadata metadata) {
    this(table, metadata, UnaryOperator.identity());
  }

  /**
   * Starts with some metadata, for a writer that has to know which files its tasks create.
   *
   * @param locations makes what tasks ask where to create files, of what the table has for that
   */
  public MetadataInMemory(
      TableOperations table, TableMetadata metadata, UnaryOperator<LocationProvider> locations) {
    this.table = table;
    this.metadata = metadata;
    this.locations = locations;
  }

  @Override
  public synchronized TableMetadata current() {
    return metadata;
  }

  @Override
  public TableMetadata refresh() {
    return current();
  }

  @Override
  public synchronized void commit(TableMetadata base, TableMetadata next) {
    if (base != metadata) {
      throw new CommitFailedException("The metadata has changed");
    }

    this.metadata = next;
  }

  @Override
  public FileIO io() {
    return table.io();
  }

  @Override
  public String metadataFileLocation(String fileName) {
    return table.temp(current()).metadataFileLocation(fileName);
  }

  @Override
  public LocationProvider locationProvider() {
    return locations.apply(table.temp(current()).locationProvider());
  }

  @Override
  public TableOperations temp(TableMetadata uncommitted) {
    return new MetadataInMemory(table, uncommitted, locations);
  }
}
