package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.Json;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.apache.iceberg.TableMetadata;

/**
 * Something that is wrong with a table.
 *
 * @param kind what
 * @param problem which file, key or property; no key's bytes
 * @param hint what to do; where it can be repaired, what that does
 * @param repair what changes the metadata so that it is right; null: that takes a person
 * @param repaired whether that was done
 */
public record Finding(
    Kind kind,
    String problem,
    String hint,
    Consumer<TableMetadata.Builder> repair,
    boolean repaired) {
  /** What can be wrong, the worst first. */
  public enum Kind {
    /** Its metadata, or its manifest list, is not what a client with the key committed. */
    TAMPERED("no client of this project reads or writes the table"),
    /** It has a key id, and snapshots without a key. */
    PLAINTEXT("anyone who can read the storage can read these rows; queries of them are refused"),
    /** It was encrypted in place, and its files from before are still there. */
    PLAINTEXT_LEFT("anyone who can read the storage can read the rows that the table had then"),
    /** Its key id is gone, and its KEKs are there. */
    KEY_ID_REMOVED(
        "no client of this project reads or writes the table; stock clients write plaintext"),
    /** Its key id is the empty text. */
    KEY_ID_EMPTY("the table cannot be written, and usually cannot be read"),
    /** Its key id is that of a master key that wrapped none of its KEKs. */
    KEY_ID_CHANGED("new KEKs are wrapped by that master key, and stock clients cannot read"),
    /** It has a key id, no KEK and no snapshot: a client without encryption writes plaintext. */
    NO_KEK("nothing shows that the table is encrypted if its key id is removed"),
    /** It has no key id, in a catalog that takes encrypted tables only. */
    NOT_ENCRYPTED("its rows are plaintext, and this catalog may refuse to read and write them"),
    /** Its metadata file, or the manifest list of its current snapshot, is gone. */
    UNREADABLE("the table cannot be read"),
    /** A snapshot's key is gone, or does not decrypt. */
    KEY_LOST("what that key is for cannot be read"),
    /** The KMS does not give a KEK, or takes no new one; or the catalog does not allow the key. */
    KEY_UNUSABLE("what is under that key cannot be read or written"),
    /** Its data key length is not that of an AES key. */
    DATA_KEY_LENGTH("the table can neither be read nor written"),
    /** Its default file format is one that cannot be encrypted. */
    FILE_FORMAT("every INSERT fails"),
    /** Its Parquet page version is one of which parts are plaintext. */
    PAGE_VERSION("files are written that show which values are null, and how long lists are"),
    /** The key metadata of files gives no length. */
    NO_LENGTH("queries of these snapshots are refused, and stock Iceberg fails to read them"),
    /** Other master keys than the table's wrap some of its KEKs. */
    OTHER_MASTER_KEY("the table works as long as the KMS has these master keys, too"),
    /** It is not encrypted, and a run that was to encrypt it was not ended. */
    ENCRYPTION_BEGUN("the table is plaintext, and encrypted copies of its rows take up storage"),
    /**
     * Anyone who can write to its storage can change its metadata without being detected. A
     * warning.
     */
    UNAUTHENTICATED("a change to its metadata by others than its users is not detected"),
    /** It could not be looked at. */
    UNCHECKED("nothing is known about it");

    private final String consequence;

    Kind(String consequence) {
      this.consequence = consequence;
    }

    /** The name for people and rows: {@code key id removed}. */
    public String label() {
      return Json.words(this);
    }

    /** What it means for those who use the table. */
    public String consequence() {
      return consequence;
    }
  }

  /** One that takes a person. */
  public static Finding of(Kind kind, String problem, String hint) {
    return new Finding(kind, problem, hint, null, false);
  }

  /** A refusal, which takes a person. */
  static Finding of(Kind kind, IcebergCryptoException e) {
    return of(kind, e.problem(), e.hint());
  }

  /** One that can be repaired in the table's metadata. */
  public static Finding repairable(
      Kind kind, String problem, String hint, Consumer<TableMetadata.Builder> repair) {
    return new Finding(kind, problem, hint, repair, false);
  }

  /**
   * That the plaintext of a table that was encrypted in place was not purged.
   *
   * @return null when it was, or there was none
   */
  public static Finding ofPlaintextLeft(String table, TableMetadata metadata) {
    String kept = metadata.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    return kept == null
        ? null
        : of(
            Kind.PLAINTEXT_LEFT,
            String.format(
                "encrypt_table encrypted it, and its plaintext from before is still in the storage:"
                    + " all files that %s reaches",
                kept),
            String.format(
                "Anyone who can read the storage can read these rows. %s lists the files, and"
                    + " without dry_run deletes them: call it when nobody needs the table as it"
                    + " was then.",
                SqlNames.call("purge_plaintext", table, "dry_run => true")));
  }

  /** Whether {@code repair_table} can repair it. */
  public boolean repairable() {
    return repair != null;
  }

  /** Whether it is the same, found another time. */
  public boolean isSame(Finding other) {
    return kind == other.kind && Objects.equals(problem, other.problem);
  }

  /** The same, repaired. */
  public Finding asRepaired() {
    return new Finding(kind, problem, hint, repair, true);
  }

  /** The same, which cannot be repaired before something else is done. */
  Finding after(String what) {
    return of(kind, problem, what + " " + hint);
  }

  /** The names and values for JSON and rows. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("kind", kind.label());
    values.put("problem", problem);
    values.put("consequence", kind.consequence());
    values.put("hint", hint);
    values.put("repairable", repairable());
    values.put("repaired", repaired);
    return values;
  }
}
