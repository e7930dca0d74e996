package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyRetention;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
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
 * @param bytesBefore the size of the metadata before, as JSON that is not compressed
 * @param bytesAfter its size without these keys
 * @param committed whether the table was changed: not by a dry run, nor when all keys are needed
 */
public record KeyPruning(
    String table,
    int keysBefore,
    int removed,
    long bytesBefore,
    long bytesAfter,
    boolean committed) {
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
    long bytesBefore = bytes(pruned.before);
    return new KeyPruning(
        table.name(),
        pruned.before.encryptionKeys().size(),
        pruned.before.encryptionKeys().size() - pruned.after.encryptionKeys().size(),
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

  /** How many keys the metadata still has. */
  public int kept() {
    return keysBefore - removed;
  }

  /** One sentence for people. */
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

  /** The names and values for JSON and rows. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", table);
    values.put("keys_before", keysBefore);
    values.put("removed", removed);
    values.put("kept", kept());
    values.put("bytes_before", bytesBefore);
    values.put("bytes_after", bytesAfter);
    values.put("committed", committed);
    values.put("message", message());
    return values;
  }
}
