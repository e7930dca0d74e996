package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.config.SqlNames;

/**
 * Something wrong, or something that could not be checked.
 *
 * @param kind the kind of file, or {@code table}
 * @param path the file, or the table's name
 * @param problem what is wrong
 * @param hint what to do
 * @param unchecked whether it could not be checked, which says nothing about the file
 * @param code what is wrong, in one word: the label of a {@link ProblemCode}
 */
public record Problem(
    String kind, String path, String problem, String hint, boolean unchecked, String code) {
  /** The problem of a file. */
  public static Problem of(FileKind kind, String path, String problem, ProblemCode code) {
    boolean unchecked = code == ProblemCode.UNREADABLE;
    String hint = FileProblem.hint(code, kind);
    return new Problem(kind.label(), path, problem, hint, unchecked, code.label());
  }

  /**
   * The problem of a whole table that is not encrypted.
   *
   * @param table the table as the user named it
   */
  public static Problem notEncrypted(String table, String fullName, String property) {
    return new Problem(
        "table",
        table,
        "it has no " + property + ": it is not encrypted",
        SqlNames.call("encrypt_table", fullName, "key_id => '<master key id>'")
            + " encrypts it in place.",
        false,
        ProblemCode.PLAINTEXT.label());
  }

  /** Whether it is a file that is not encrypted. */
  public boolean isPlaintextFile() {
    return !isOfTable() && ProblemCode.PLAINTEXT.label().equals(code);
  }

  /** The same with another hint. */
  public Problem withHint(String other) {
    return new Problem(kind, path, problem, other, unchecked, code);
  }

  boolean isOfTable() {
    return kind.equals("table");
  }
}
