package io.icebergcrypto.format;

import java.nio.charset.StandardCharsets;

/** What a file is, by its first bytes alone; its name does not count. */
public enum FileMagic {
  /** Parquet with an encrypted footer (Parquet modular encryption, section 5.2). */
  PARE("PARE", "parquet", true),
  /**
   * Parquet that any reader can open. Parquet's plaintext footer mode, in which single columns are
   * encrypted, starts this way too; Iceberg never writes it, and its footer leaks the statistics,
   * so it counts as not encrypted.
   */
  PAR1("PAR1", "parquet", false),
  /** An AES GCM stream, version 1: what Iceberg wraps Avro, manifests and Puffin in. */
  AGS1("AGS1", "aes-gcm-stream", true),
  /** A plaintext Avro object container file. */
  AVRO("Obj\u0001", "avro", false),
  /** A plaintext Puffin file: statistics or deletion vectors. */
  PUFFIN("PFA1", "puffin", false),
  /** A plaintext ORC file. */
  ORC("ORC", "orc", false),
  /** Text whose first character other than white space is an opening brace: table metadata. */
  JSON(null, "json", false),
  /** A file of no bytes. */
  EMPTY(null, "empty", false),
  /**
   * An encrypted file of a later version than {@link #AGS1} or {@link #PARE}, by its first bytes.
   */
  LATER(null, "later", false),
  /** None of the others. */
  OTHER(null, "unknown", false);

  /** How many bytes of a file {@link #of} looks at, at most. */
  public static final int HEAD_LENGTH = 64;

  private static final FileMagic[] ALL = values();

  private final byte[] prefix;
  private final String format;
  private final boolean encrypted;

  FileMagic(String prefix, String format, boolean encrypted) {
    this.prefix = prefix == null ? null : prefix.getBytes(StandardCharsets.ISO_8859_1);
    this.format = format;
    this.encrypted = encrypted;
  }

  /**
   * Recognises a file.
   *
   * @param head the file's first bytes, at least {@link #HEAD_LENGTH} unless the file is shorter;
   *     no bytes at all means an empty file
   */
  public static FileMagic of(byte[] head) {
    if (head.length == 0) {
      return EMPTY;
    }
    for (FileMagic magic : ALL) {
      if (magic.prefix != null && startsWith(head, magic.prefix)) {
        return magic;
      }
    }
    if (startsJson(head)) {
      return JSON;
    }
    return startsLater(head) ? LATER : OTHER;
  }

  /** Whether the content is encrypted: true for {@link #PARE} and {@link #AGS1} alone. */
  public boolean encrypted() {
    return encrypted;
  }

  /**
   * The format in lower case: parquet, aes-gcm-stream, avro, puffin, orc, json, empty, later or
   * unknown. What an AES GCM stream holds cannot be told without its key.
   */
  public String format() {
    return format;
  }

  private static boolean startsWith(byte[] head, byte[] prefix) {
    if (head.length < prefix.length) {
      return false;
    }
    for (int i = 0; i < prefix.length; i++) {
      if (head[i] != prefix[i]) {
        return false;
      }
    }
    return true;
  }

  private static boolean startsLater(byte[] head) {
    String magic = new String(head, 0, Math.min(4, head.length), StandardCharsets.ISO_8859_1);
    return magic.matches("AGS[2-9]|PAR[2-9A-Z]");
  }

  private static boolean startsJson(byte[] head) {
    int end = Math.min(head.length, HEAD_LENGTH);
    for (int i = 0; i < end; i++) {
      switch (head[i]) {
        case ' ', '\t', '\r', '\n' -> {}
        default -> {
          return head[i] == '{';
        }
      }
    }
    return false;
  }
}
