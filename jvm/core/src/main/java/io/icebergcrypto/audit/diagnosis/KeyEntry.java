package io.icebergcrypto.audit.diagnosis;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * One key of a table: its master key, or an entry of its metadata. It has no key's bytes.
 *
 * @param keyId its id
 * @param kind what it encrypts
 * @param encryptedBy the id of the key that wraps it; null for a master key
 * @param usedFor the statistics file, or the snapshot if there is one; else null
 * @param snapshots how many snapshots cannot be read without it
 * @param length its length in bytes; null when that cannot be told without its bytes
 * @param createdAt when it was made, which only a KEK and a value key tell; else null
 * @param age the time since then; else null
 * @param overdue whether it is a KEK that is older than the catalog allows
 * @param kmsAnswers whether the KMS just used the key (a master key) or unwrapped it (a KEK, a
 *     value key); null: it was not asked
 * @param authenticatedWrapping whether only those who may use the master key can wrap with it;
 *     null: it is no matter of the KMS
 * @param problem what is wrong; null: nothing
 * @param keyVersion the version of its master key that wrapped a KEK or a value key; null for other
 *     keys, and where the wrapped key does not say
 */
public record KeyEntry(
    String keyId,
    Kind kind,
    String encryptedBy,
    String usedFor,
    int snapshots,
    Integer length,
    Instant createdAt,
    Duration age,
    boolean overdue,
    Boolean kmsAnswers,
    Boolean authenticatedWrapping,
    String problem,
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
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /** Whether the KMS was asked for it, and did not give it. */
  public boolean isRefused() {
    return Boolean.FALSE.equals(kmsAnswers);
  }

  /** The age in whole days; null when it is not known. */
  public Long ageDays() {
    return age == null ? null : age.toDays();
  }

  /** The names and values for JSON; the times in ISO 8601, UTC. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("key_id", keyId);
    values.put("kind", kind.label());
    values.put("encrypted_by", encryptedBy);
    values.put("created_at", createdAt == null ? null : createdAt.toString());
    values.put("age_days", ageDays());
    values.put("snapshots", snapshots);
    values.put("overdue", overdue);
    values.put("kms_answers", kmsAnswers);
    values.put("authenticated_wrapping", authenticatedWrapping);
    values.put("problem", problem);
    values.put("used_for", usedFor);
    values.put("key_length", length);
    values.put("key_version", keyVersion);
    return values;
  }
}
