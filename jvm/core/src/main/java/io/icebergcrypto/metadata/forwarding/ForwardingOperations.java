package io.icebergcrypto.metadata.forwarding;

import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * Operations of a table that forward what they do not override. They do not forward {@code temp}:
 * the operations that it returns would not be decorated.
 */
public interface ForwardingOperations extends TableOperations {
  /** The operations that are decorated. */
  TableOperations below();

  @Override
  default TableMetadata current() {
    return below().current();
  }

  @Override
  default TableMetadata refresh() {
    return below().refresh();
  }

  @Override
  default void commit(TableMetadata base, TableMetadata metadata) {
    below().commit(base, metadata);
  }

  @Override
  default FileIO io() {
    return below().io();
  }

  @Override
  default EncryptionManager encryption() {
    return below().encryption();
  }

  @Override
  default String metadataFileLocation(String fileName) {
    return below().metadataFileLocation(fileName);
  }

  @Override
  default LocationProvider locationProvider() {
    return below().locationProvider();
  }

  @Override
  default long newSnapshotId() {
    return below().newSnapshotId();
  }

  @Override
  default boolean requireStrictCleanup() {
    return below().requireStrictCleanup();
  }
}
