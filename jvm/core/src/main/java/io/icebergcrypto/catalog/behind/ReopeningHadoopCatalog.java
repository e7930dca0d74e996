package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.hadoop.HadoopCatalog;

/**
 * A Hadoop catalog whose tables' operations are reopened after a load has failed, and when the file
 * that they have loaded is another one now. Iceberg's own take a version for loaded before they
 * have read it, and a version with the same number for the one they have read, although the table
 * was dropped and another made. From then on they return the metadata from before it, and the next
 * commit, which is based on that, takes the place of what is there.
 */
public class ReopeningHadoopCatalog extends HadoopCatalog {
  @Override
  protected TableOperations newTableOps(TableIdentifier table) {
    return new Reopening(() -> super.newTableOps(table));
  }

  private static final class Reopening implements ForwardingOperations {
    private final Supplier<TableOperations> open;
    private volatile TableOperations opened;
    private TableMetadata loaded; // by those that are open
    private String uuid;

    private Reopening(Supplier<TableOperations> open) {
      this.open = open;
      this.opened = open.get();
    }

    @Override
    public TableOperations below() {
      return opened;
    }

    @Override
    public TableMetadata current() {
      return load(TableOperations::current);
    }

    @Override
    public synchronized TableMetadata refresh() {
      TableMetadata before = loaded;
      TableMetadata metadata;
      try {
        metadata = load(TableOperations::refresh);
      } catch (ValidationException e) { // the version is missing: the table was dropped
        TableMetadata made = before == null ? null : load(TableOperations::refresh);
        if (made == null) {
          throw e;
        }

        return made;
      }

      return metadata == null || metadata != before || isStillThere(metadata)
          ? metadata
          : reloaded();
    }

    private boolean isStillThere(TableMetadata metadata) {
      return MetadataFile.isStillThere(opened.io(), metadata);
    }

    private TableMetadata reloaded() {
      reopen();
      return load(TableOperations::refresh);
    }

    private void reopen() {
      this.opened = open.get(); // which loads nothing
      this.loaded = null;
    }

    private synchronized TableMetadata load(Function<TableOperations, TableMetadata> way) {
      TableMetadata metadata;
      try {
        metadata = way.apply(opened);
        checkUuid(metadata);
      } catch (RuntimeException e) {
        reopen();
        throw e;
      }

      this.loaded = metadata;
      this.uuid = metadata == null ? uuid : metadata.uuid();
      return metadata;
    }

    /** Those that are reopened do not know which table it was; Iceberg's words, as callers do. */
    private void checkUuid(TableMetadata metadata) {
      if (metadata != null && uuid != null && !Objects.equals(uuid, metadata.uuid())) {
        throw new IllegalStateException(
            String.format(
                "Table UUID does not match: current=%s != refreshed=%s", uuid, metadata.uuid()));
      }
    }

    @Override
    public synchronized void commit(TableMetadata base, TableMetadata metadata) {
      if (base != null && base == loaded && !isStillThere(base)) {
        reloaded(); // unless it is of another table, the base is not in force
      }

      opened.commit(base, metadata);
      this.uuid = metadata.uuid();
    }

    @Override
    public TableOperations temp(TableMetadata uncommitted) {
      return opened.temp(uncommitted);
    }
  }
}
