package io.icebergcrypto.values;

import io.icebergcrypto.config.WrappedValueKey;
import java.time.Instant;
import java.util.Comparator;

/**
 * What is told of one version of a value key.
 *
 * @param name what SQL calls the key
 * @param version its id, in hexadecimal digits
 * @param masterKeyId the master key that wraps it
 * @param createdAt when it was made
 */
public record ValueKeyEntry(String name, String version, String masterKeyId, Instant createdAt)
    implements Comparable<ValueKeyEntry> {

  static ValueKeyEntry of(WrappedValueKey key) {
    return new ValueKeyEntry(
        key.name(), key.version(), key.masterKeyId(), Instant.ofEpochMilli(key.createdAtMs()));
  }

  @Override
  public int compareTo(ValueKeyEntry other) {
    return Comparator.comparing(ValueKeyEntry::name)
        .thenComparing(ValueKeyEntry::createdAt)
        .thenComparing(ValueKeyEntry::version)
        .compare(this, other);
  }
}
