package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.format.Outcome;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * The keys that are no longer needed, removed from a table's metadata. Every commit of an
 * encrypting catalog does the same ({@link KeyRetention}); this is for tables that grew under
 * clients that remove none, and commits nothing else.
 *
 * @param table the table's full name
 * @param keysBefore how many keys the metadata had
 * @param removed how many of them went
 * @param kept how many it still has
 * @param bytesBefore the size of the metadata before, as JSON that is not compressed
 * @param bytesAfter its size without these keys
 * @param committed whether the table was changed: not by a dry run, nor when all keys are needed
 */
public record KeyPruning(
    String table,
    int keysBefore,
    int removed,
    int kept,
    long bytesBefore,
    long bytesAfter,
    boolean committed)
    implements Outcome {
  /**
   * Removes the keys that no snapshot and no statistics file of the table needs, in one commit. It
   * asks the KMS nothing, unless the metadata is signed.
   *
   * @param dryRun true: everything but the commit
   * @throws NotSupportedException when the table is not encrypted
   * @throws IcebergCryptoException the commit's own error; nothing was changed
   */
  public static KeyPruning run(
      EncryptedCatalog catalog, TableIdentifier identifier, boolean dryRun) {
    RotationTarget table = RotationTarget.load(catalog, identifier);
    Pruned pruned = new Pruned();
    if (dryRun) {
      pruned.of(table.current());
    } else {
      table.commit(pruned::of);
    }

    boolean changed = pruned.after != pruned.before;
    int keysBefore = pruned.before.encryptionKeys().size();
    int kept = pruned.after.encryptionKeys().size();
    long bytesBefore = bytes(pruned.before);
    return new KeyPruning(
        table.name(),
        keysBefore,
        keysBefore - kept,
        kept,
        bytesBefore,
        changed ? bytes(pruned.after) : bytesBefore,
        changed && !dryRun);
  }

  /** Metadata of the last attempt. */
  private static final class Pruned {
    private TableMetadata before;
    private TableMetadata after;

    TableMetadata of(TableMetadata metadata) {
      Set<String> unneeded = KeyRetention.unneeded(metadata, System.currentTimeMillis());
      TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
      unneeded.forEach(builder::removeEncryptionKey);
      this.before = metadata;
      this.after = unneeded.isEmpty() ? metadata : builder.build();
      return after;
    }
  }

  private static long bytes(TableMetadata metadata) {
    return TableMetadataParser.toJson(metadata).getBytes(StandardCharsets.UTF_8).length;
  }

  @Override
  public String message() {
    String keys = keysBefore == 1 ? "1 key is" : String.format("%,d keys are", keysBefore);
    if (removed == 0) {
      return String.format("nothing to remove: %s needed", keys);
    }

    return String.format(
        committed
            ? "%,d of %,d keys removed: the metadata has %,d bytes instead of %,d"
            : "%,d of %,d keys would go: the metadata would have %,d bytes instead of %,d; nothing"
                + " was changed",
        removed,
        keysBefore,
        bytesAfter,
        bytesBefore);
  }
}
