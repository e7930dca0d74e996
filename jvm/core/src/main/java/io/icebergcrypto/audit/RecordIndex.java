package io.icebergcrypto.audit;

import com.google.gson.JsonObject;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.format.Json;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The files in which a verification recorded its outcomes, each with the SHA-256 of its bytes. A
 * report has the SHA-256 of the index, so its signature covers all of them. Files that are not in
 * the index do not count, whoever wrote them.
 *
 * @param oldest when the oldest of its checks began; null: it has no files
 * @param files the hashes in hex, by name
 */
public record RecordIndex(Instant oldest, SortedMap<String, String> files) {
  /** More than any index has: someone may have put anything in its place. */
  public static final int MAX_BYTES = 1 << 28;

  /** An index of these files. */
  public static RecordIndex of(Instant oldest, Map<String, String> files) {
    return new RecordIndex(oldest, new TreeMap<>(files));
  }

  /** An index of these files and of more. */
  public RecordIndex with(Instant begun, Map<String, String> more) {
    SortedMap<String, String> all = new TreeMap<>(files);
    all.putAll(more);
    return new RecordIndex(oldest == null || begun.isBefore(oldest) ? begun : oldest, all);
  }

  /**
   * Reads the index that a report names.
   *
   * @param folder where it is
   * @throws InvalidConfigurationException when these are not the bytes that were signed
   */
  public static RecordIndex read(byte[] stored, String signedSha256, String folder) {
    if (!sha256(stored).equals(signedSha256)) {
      throw notSigned(folder, "its index was changed");
    }

    JsonObject told = Json.object(new String(stored, StandardCharsets.UTF_8));
    Instant oldest = Instant.parse(told.get("oldest").getAsString());
    return of(oldest, Json.texts(told.get("files").toString()));
  }

  /**
   * Compares the files with what is there now.
   *
   * @param found the hashes of the files that are there
   * @throws InvalidConfigurationException when one is missing, or has other bytes
   */
  public void require(Map<String, String> found, String folder) {
    files.forEach(
        (name, hash) -> {
          String now = found.get(name);
          if (!hash.equals(now)) {
            throw notSigned(folder, name + (now == null ? " is missing" : " was changed"));
          }
        });
  }

  /** The refusal of a record. */
  public static InvalidConfigurationException notSigned(String folder, String why) {
    return new InvalidConfigurationException(
        String.format("The record in %s is not what was signed: %s", folder, why),
        "Nothing was verified. Find out who can write to this folder, and verify without since and"
            + " with a new folder to resume: that reads all files of the table.");
  }

  /** What is stored. */
  public byte[] bytes() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("oldest", String.valueOf(oldest));
    json.put("files", files);
    return Json.of(json).getBytes(StandardCharsets.UTF_8);
  }

  /** The SHA-256 of some bytes, in hex. */
  public static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no SHA-256", e);
    }
  }
}
