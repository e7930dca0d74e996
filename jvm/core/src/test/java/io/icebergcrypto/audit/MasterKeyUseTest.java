package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.audit.MasterKeyUse.WrappedBy;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which tables a rotation of many leaves alone. */
class MasterKeyUseTest {
  private static final List<WrappedBy> NONE = List.of();

  /** Of all keys but that, version 3 wraps. */
  private static OptionalInt wrappingVersion(String keyId) {
    return keyId.equals("mute") ? OptionalInt.empty() : OptionalInt.of(3);
  }

  private static MasterKeyUse use(String keyId, List<WrappedBy> keks, List<WrappedBy> valueKeys) {
    return new MasterKeyUse("lake.db.t", keyId, keks, valueKeys, false);
  }

  private static WrappedBy by(String keyId, Integer version) {
    return new WrappedBy(keyId, version, 0, true);
  }

  private static boolean isCurrent(MasterKeyUse use, String wanted) {
    return use.isCurrent(wanted, MasterKeyUseTest::wrappingVersion);
  }

  @ParameterizedTest
  @CsvSource(
      nullValues = "-",
      value = {
        // wanted, the table's key, its KEKs' versions, whether they are current
        "-, k1, 3, true",
        "-, k1, 2, false",
        "-, k1, 3 2, false",
        "-, mute, -, false", // nobody knows whether it is the newest
        "mute, mute, -, true", // asked for by name, and so it is
        "k1, k1, 3, true",
        "k1, k1, 2, false",
        "k1, k2, 3, false",
        "-, -, 3, false",
      })
  void keks(String wanted, String keyId, String versions, boolean current) {
    List<WrappedBy> keks =
        versions == null
            ? List.of(by(keyId, null))
            : Arrays.stream(versions.split(" "))
                .map(version -> by(keyId == null ? "k1" : keyId, Integer.valueOf(version)))
                .toList();
    assertThat(isCurrent(use(keyId, keks, NONE), wanted)).isEqualTo(current);
  }

  @Test
  void withoutKekNothingIsCurrent() {
    assertThat(isCurrent(use("k1", NONE, NONE), null)).isFalse();
  }

  @Test
  void aKekOfAnotherMasterKeyIsNotCurrent() {
    MasterKeyUse use = use("k1", List.of(by("k1", 3), by("k0", 3)), NONE);
    assertThat(isCurrent(use, null)).isFalse();
    assertThat(isCurrent(use, "k1")).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    // the value key's master key and version; whether all is current, and with a key asked for
    "k1, 3, true, true",
    "k1, 2, false, false",
    "k3, 3, true, false", // its own is the newest, but not the one that was asked for
    "k3, 2, false, false",
  })
  void valueKeys(String keyId, int version, boolean current, boolean ofWanted) {
    MasterKeyUse use = use("k1", List.of(by("k1", 3)), List.of(by(keyId, version)));
    assertThat(isCurrent(use, null)).isEqualTo(current);
    assertThat(isCurrent(use, "k1")).isEqualTo(ofWanted);
  }

  @Test
  void aYoungKek() {
    WrappedBy old = new WrappedBy("k1", 1, 100, true);
    WrappedBy kept = new WrappedBy("k1", 1, 100, false);
    WrappedBy young = new WrappedBy("k1", 1, 200, true);
    assertThat(use("k1", List.of(young), NONE).hasKekSince(150, true)).isTrue();
    assertThat(use("k1", List.of(old), NONE).hasKekSince(150, false)).isFalse();
    assertThat(use("k1", NONE, NONE).hasKekSince(0, false)).isFalse();
    MasterKeyUse two = use("k1", List.of(old, young), NONE);
    assertThat(two.hasKekSince(150, false)).isTrue();
    assertThat(two.hasKekSince(150, true)).as("something is under the older one").isFalse();
    assertThat(use("k1", List.of(young, kept), NONE).hasKekSince(150, true)).isTrue();
  }
}
