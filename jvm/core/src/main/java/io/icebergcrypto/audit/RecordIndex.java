package io.icebergcrypto.audit;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The files of one verification's record, each with the SHA-256 of its bytes. A report has the
 * SHA-256 of the index, so its signature covers all of them. Files that are not in the index do not
 * count, whoever wrote them.
 *
 * @param files the hashes in hex, by name
 */
public record RecordIndex(SortedMap<String, String> files) {
  /** More than any index has: someone may have put anything in its place. */
  public static final int MAX_BYTES = 1 << 24;

  /** An index of these files. */
  public static RecordIndex of(Map<String, String> files) {
    return new RecordIndex(new TreeMap<>(files));
  }

  /**
   * Reads the index that a report names.
   *
   * @param folder where it is
   * @throws InvalidConfigurationException when these are not the bytes that were signed
   */
  public static RecordIndex read(byte[] stored, String signedSha256, String folder) {
    if (!Sha256.hex(stored).equals(signedSha256)) {
      throw changed(folder, "its index");
    }

    return of(Json.texts(new String(stored, StandardCharsets.UTF_8)));
  }

  /**
   * Compares the files with those that are there now.
   *
   * @throws InvalidConfigurationException when one is missing
   */
  public void require(Set<String> found, String folder) {
    for (String name : files.keySet()) {
      if (!found.contains(name)) {
        throw missing(folder, name);
      }
    }
  }

  /** The refusal of a record of which a file is gone. */
  public static InvalidConfigurationException missing(String folder, String what) {
    return notSigned(
        folder, what + " is missing", "It was deleted, or expired by a rule of the storage.");
  }

  /** The refusal of a record of which a file has other bytes. */
  public static InvalidConfigurationException changed(String folder, String what) {
    return notSigned(folder, what + " was changed", "Find out who can write to this folder.");
  }

  private static InvalidConfigurationException notSigned(String folder, String why, String hint) {
    return new InvalidConfigurationException(
        String.format("The record in %s is not what was signed: %s", folder, why),
        hint
            + " Nothing was verified. Verify without since and with a new folder to resume: that"
            + " reads all files of the table.");
  }

  /** What is stored. */
  public byte[] bytes() {
    return Json.of(files).getBytes(StandardCharsets.UTF_8);
  }
}
