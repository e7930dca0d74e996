package io.icebergcrypto;

import java.util.Locale;
import java.util.Set;

/** What is wrong with a file of a table, in one word, for programs. */
public enum ProblemCode {
  /** It, or a part of it, is not encrypted. */
  PLAINTEXT,
  /** It does not exist. */
  MISSING,
  /** It is shorter than it was written. */
  TRUNCATED,
  /** It is longer than it was written. */
  APPENDED,
  /** The table's metadata has no key for it. */
  NO_KEY,
  /** Nothing says how long it was written, so that bytes could be missing at its end. */
  NO_LENGTH,
  /** It is encrypted, in another format than the table's metadata says. */
  WRONG_FORMAT,
  /** It is in any other way not what was written. */
  TAMPERED,
  /** It is encrypted, and nothing shows whether its data was changed: AES-CTR. */
  UNAUTHENTICATED,
  /** It could not be checked, which says nothing about it. */
  UNREADABLE;

  /** The codes of a file that could not be read. */
  public static final Set<ProblemCode> UNREAD = Set.of(MISSING, UNREADABLE);

  /** The word in reports: {@code no-key}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The code of this {@link #label()}. */
  public static ProblemCode ofLabel(String label) {
    return valueOf(label.toUpperCase(Locale.ROOT).replace('-', '_'));
  }
}
