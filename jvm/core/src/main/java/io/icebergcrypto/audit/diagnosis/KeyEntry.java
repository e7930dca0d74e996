package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.format.Json;
import java.time.Instant;

/**
 * One key of a table: its master key, or an entry of its metadata. It has no key's bytes.
 *
 * @param keyId its id
 * @param kind what it encrypts
 * @param encryptedBy the id of the key that wraps it; null for a master key
 * @param createdAt when it was made, which only a KEK and a value key tell; else null
 * @param ageDays the whole days since then; else null
 * @param snapshots how many snapshots cannot be read without it
 * @param overdue whether it is a KEK that is older than the catalog allows
 * @param kmsAnswers whether the KMS just used the key (a master key) or unwrapped it (a KEK, a
 *     value key); null: it was not asked
 * @param authenticatedWrapping whether only those who may use the master key can wrap with it;
 *     null: it is no matter of the KMS
 * @param problem what is wrong; null: nothing
 * @param usedFor the statistics file, or the snapshot if there is one; else null
 * @param keyLength its length in bytes; null when that cannot be told without its bytes
 * @param keyVersion the version of its master key that wrapped a KEK or a value key; null for other
 *     keys, and where the wrapped key does not say
 */
public record KeyEntry(
    String keyId,
    Kind kind,
    String encryptedBy,
    Instant createdAt,
    Long ageDays,
    int snapshots,
    boolean overdue,
    Boolean kmsAnswers,
    Boolean authenticatedWrapping,
    String problem,
    String usedFor,
    Integer keyLength,
    Integer keyVersion) {

  /** What a key encrypts. The order is that of reports. */
  public enum Kind {
    MASTER,
    KEK,
    /** Values of columns: a version of a value key, in the table that keeps these. */
    VALUE,
    MANIFEST_LIST,
    STATISTICS,
    /** An entry of a kind that neither Iceberg nor this project makes. */
    OTHER,
    /** Nothing: the next commit removes it. */
    DEAD;

    /** The name for people: {@code manifest list}. */
    public String label() {
      return Json.words(this);
    }
  }

  /** Whether the KMS was asked for it, and did not give it. */
  public boolean isRefused() {
    return Boolean.FALSE.equals(kmsAnswers);
  }
}
