package io.icebergcrypto.format;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What one file is, and how it is encrypted.
 *
 * @param path the file's location
 * @param length the file's length in bytes
 * @param magic what its first bytes say
 * @param ags1 the block layout of an {@link FileMagic#AGS1} file, else null
 * @param pare the encryption settings of a {@link FileMagic#PARE} file, else null
 */
public record FileInspection(
    String path, long length, FileMagic magic, Ags1Layout ags1, PareFooter pare) {

  /**
   * The inspection as a JSON object: {@code path, length, magic, format, encrypted}; for an AES GCM
   * stream also {@code block_size, block_count, plaintext_length}; for encrypted Parquet also
   * {@code algorithm, footer_length, aad_prefix_supplied, aad_prefix_stored,
   * aad_file_unique_length}. Lengths and sizes are in bytes.
   */
  public String toJson() {
    return Json.of(toMap());
  }

  /** What {@link #toJson} has, by its names there. */
  public Map<String, Object> toMap() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("path", path);
    json.put("length", length);
    json.put("magic", magic.name());
    json.put("format", magic.format());
    json.put("encrypted", magic.encrypted());
    if (ags1 != null) {
      json.putAll(Json.map(ags1));
    }
    if (pare != null) {
      json.put("algorithm", pare.algorithm().name());
      json.put("footer_length", pare.footerLength());
      json.put("aad_prefix_supplied", pare.supplyAadPrefix());
      json.put("aad_prefix_stored", pare.aadPrefixStored());
      json.put("aad_file_unique_length", pare.aadFileUniqueLength());
    }
    return json;
  }
}
