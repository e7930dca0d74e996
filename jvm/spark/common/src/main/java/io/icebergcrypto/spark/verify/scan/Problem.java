package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.audit.FileKind;
import java.util.Map;

/**
 * Something wrong, or something that could not be checked.
 *
 * @param kind the kind of file, or {@code table}
 * @param path the file, or the table's name
 * @param problem what is wrong
 * @param hint what to do
 * @param unchecked whether it could not be checked, which says nothing about the file
 * @param code what is wrong, in one word
 */
public record Problem(
    String kind, String path, String problem, String hint, boolean unchecked, String code) {
  private static final String UNREADABLE = "unreadable";
  private static final String UNCHECKED_HINT =
      "The check failed, which says nothing about the file. Mend what failed (KMS, storage,"
          + " permission), and verify again.";

  /** The words of a problem that tell its code. What has none of them failed an authentication. */
  private static final Map<String, String> CODES =
      Map.of(
          "is not encrypted", "plaintext",
          "it does not exist", "missing",
          "it is empty", "truncated",
          "cut off", "truncated",
          "were appended", "appended",
          "has no key", "no-key",
          "is not in encryption-keys", "no-key",
          ", expected PARE", "wrong-format",
          ", expected AGS1", "wrong-format",
          "no metadata reaches it", "stray");

  /** The problem of a file. */
  public static Problem of(FileKind kind, String path, String problem, boolean unchecked) {
    return new Problem(
        kind.label(),
        path,
        problem,
        unchecked ? UNCHECKED_HINT : kind.hint(),
        unchecked,
        unchecked ? UNREADABLE : code(problem));
  }

  /** The problem of a whole table that is not encrypted. */
  public static Problem notEncrypted(String table, String property) {
    return new Problem(
        "table",
        table,
        "it has no " + property + ": it is not encrypted",
        "Make an encrypted copy: CREATE TABLE <new> USING iceberg TBLPROPERTIES"
            + " ('encryption.key-id'='<master key id>') AS SELECT * FROM "
            + table
            + ".",
        false,
        "plaintext");
  }

  boolean isOfTable() {
    return kind.equals("table");
  }

  /** The code whose words come first. */
  private static String code(String problem) {
    return CODES.entrySet().stream()
        .filter(entry -> problem.contains(entry.getKey()))
        .min((a, b) -> problem.indexOf(a.getKey()) - problem.indexOf(b.getKey()))
        .map(Map.Entry::getValue)
        .orElse("tampered");
  }
}
