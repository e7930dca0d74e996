package io.icebergcrypto.lifecycle.repair;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.apache.iceberg.TableMetadata;

/**
 * Something that is wrong with a table.
 *
 * @param kind what
 * @param detail which file, key or property; no key's bytes
 * @param remedy what a person can do
 * @param mend what {@link TableRepair} can do to the metadata; null: nothing, it takes a person
 * @param mended whether that was done
 */
public record Defect(
    Kind kind, String detail, String remedy, Consumer<TableMetadata.Builder> mend, boolean mended) {
  /** What can be wrong, in the order of reports: what stands in the way of the rest comes first. */
  public enum Kind {
    /** Its metadata is not what a client with the key committed. */
    METADATA_REFUSED("no client of this project reads or writes the table"),
    /** Its metadata file, or the manifest list of its current snapshot, cannot be had. */
    UNREADABLE("the table cannot be read"),
    /** Its key id is gone, and its KEKs are there. */
    KEY_ID_REMOVED(
        "no client of this project reads or writes the table; stock clients write plaintext"),
    /** Its key id is the empty text. */
    KEY_ID_EMPTY("the table cannot be written, and as a rule not be read"),
    /** Its key id is that of a master key that wrapped none of its KEKs. */
    KEY_ID_CHANGED("new KEKs are wrapped by that master key, and stock clients cannot read"),
    /** Its data key length is none of an AES key. */
    DATA_KEY_LENGTH("the table can neither be read nor written"),
    /** Its default file format is one that cannot be encrypted. */
    FILE_FORMAT("every INSERT fails"),
    /** Its Parquet page version is one of which parts are plaintext. */
    PAGE_VERSION("files are written that tell which values are null, and how long lists are"),
    /** The key metadata of files gives no length. */
    NO_LENGTH("queries of these snapshots are refused, and stock Iceberg fails to read them"),
    /** It has a key id, no KEK and no snapshot. */
    NO_KEK("nothing shows that the table is encrypted if its key id is removed"),
    /** Snapshots, or files that they add, are plaintext. */
    PLAINTEXT("whoever reads the storage reads these rows; queries of them are refused"),
    /** It was encrypted in place, and its files of before are still there. */
    PLAINTEXT_LEFT("whoever reads the storage reads the rows that the table had then"),
    /** A snapshot's key is gone, or does not decrypt. */
    KEY_LOST("what that key is for cannot be read"),
    /** The KMS does not give a KEK, or takes no new one. */
    KEY_UNUSABLE("what is under that key cannot be read or written"),
    /** Other master keys than the table's wrap some of its KEKs. */
    OTHER_MASTER_KEY("the table is in order as long as the KMS has these master keys, too"),
    /** It is not encrypted, and a run that was to encrypt it was not ended. */
    ENCRYPTION_BEGUN("the table is plaintext, and encrypted copies of its rows take up storage"),
    /** It could not be looked at. */
    UNCHECKED("nothing is known about it");

    private final String consequence;

    Kind(String consequence) {
      this.consequence = consequence;
    }

    /** The name for people and rows: {@code key id removed}. */
    public String label() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    /** What it means for who uses the table. */
    public String consequence() {
      return consequence;
    }
  }

  /** One that takes a person. */
  static Defect of(Kind kind, String detail, String remedy) {
    return new Defect(kind, detail, remedy, null, false);
  }

  /** Whether it can be mended here. */
  public boolean mendable() {
    return mend != null;
  }

  /** Whether it is the same, found another time. */
  boolean isSame(Defect other) {
    return kind == other.kind && Objects.equals(detail, other.detail);
  }

  /** The same, mended. */
  Defect asMended() {
    return new Defect(kind, detail, remedy, mend, true);
  }

  /** The same, which cannot be mended before something else is. */
  Defect afterwards(String what) {
    return of(kind, detail, what + " " + remedy);
  }

  /** The names and values for JSON and rows. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("finding", kind.label());
    values.put("detail", detail);
    values.put("consequence", kind.consequence());
    values.put("remedy", remedy);
    values.put("mendable", mendable());
    values.put("mended", mended);
    return values;
  }
}
