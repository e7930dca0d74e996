package io.icebergcrypto;

import org.apache.iceberg.exceptions.CleanableFailure;

/**
 * The root of this project's errors. A message says what is wrong and then, on a line of its own,
 * what to do about it.
 *
 * <p>It is a {@link CleanableFailure}: it is only thrown before a commit has reached the catalog,
 * so Iceberg and Spark may delete the files that the failed operation wrote.
 *
 * <p>It does not change: threads that wait for one answer of a KMS share its error, and each adds
 * to a copy.
 *
 * <p>See docs/errors.md#icebergcryptoerror.
 */
public class IcebergCryptoException extends RuntimeException
    implements CleanableFailure, Cloneable {
  private static final long serialVersionUID = 1L;

  private String problem;
  private String hint;
  private String subject;

  /**
   * Makes an error.
   *
   * @param problem what is wrong; names the table and the file, the property or the key id
   * @param hint what to do about it
   */
  public IcebergCryptoException(String problem, String hint) {
    this(problem, hint, null);
  }

  /**
   * Makes an error that another one caused.
   *
   * @param problem what is wrong; names the table and the file, the property or the key id
   * @param hint what to do about it
   * @param cause the error below, or null
   */
  public IcebergCryptoException(String problem, String hint, Throwable cause) {
    super(problem, cause);
    this.problem = problem;
    this.hint = hint;
  }

  /** What is wrong, what it concerns and, on a line of its own, what to do. */
  @Override
  public String getMessage() {
    return problem() + "\n  hint: " + hint;
  }

  /**
   * Adds the table to an error from a layer that does not know tables (a KMS, a file format).
   *
   * @param name the table's full name; ignored when the error already names a table or a catalog
   * @return the error with that
   */
  public IcebergCryptoException inTable(String name) {
    return about("Table " + name);
  }

  /**
   * Adds the catalog to an error that arose when it started.
   *
   * @param name the catalog's name; ignored when the error already names a table or a catalog
   * @return the error with that
   */
  public IcebergCryptoException inCatalog(String name) {
    return about("Catalog " + name);
  }

  /**
   * Adds the namespace to an error that concerns its properties.
   *
   * @param name the namespace's full name; ignored when the error already names a table or a
   *     catalog
   * @return the error with that
   */
  public IcebergCryptoException inNamespace(String name) {
    return about("Namespace " + name);
  }

  /**
   * Adds the part of a file to an error from a layer that does not know files (a KMS).
   *
   * @param part such as {@code Column 'ssn' of <file>}; ignored when the error already names a
   *     table, a catalog or a file
   * @return the error with that
   */
  public IcebergCryptoException inFile(String part) {
    return about(part);
  }

  private IcebergCryptoException about(String what) {
    return subject == null ? copy(hint, what) : this;
  }

  private IcebergCryptoException copy(String newHint, String newSubject) {
    IcebergCryptoException copy = copy();
    copy.hint = newHint;
    copy.subject = newSubject;
    return copy;
  }

  /** The same error, for what one of its methods changes. */
  IcebergCryptoException copy() {
    try {
      return (IcebergCryptoException) clone();
    } catch (CloneNotSupportedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** What is wrong, without the hint. */
  public String problem() {
    return subject == null ? problem : subject + ": " + problem;
  }

  /**
   * Adds what else can be done, which the layer where the error arose does not know.
   *
   * @param more a sentence
   * @return the error with that
   */
  public IcebergCryptoException withHint(String more) {
    return copy(hint + " " + more, subject);
  }

  /**
   * Names the key in an error from a layer that does not know it.
   *
   * @param whole what is wrong, with {@link #problem()} in it
   * @return the error with that
   */
  public IcebergCryptoException withProblem(String whole) {
    IcebergCryptoException copy = copy(hint, null);
    copy.problem = whole;
    return copy;
  }

  /** What to do about it. */
  public String hint() {
    return hint;
  }
}
