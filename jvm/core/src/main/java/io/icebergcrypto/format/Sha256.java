package io.icebergcrypto.format;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;

/** SHA-256 (FIPS 180-4), as sha256sum prints it. */
public final class Sha256 {
  private Sha256() {}

  /** The hash of some bytes: 64 hex digits in lower case. */
  public static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(of(bytes));
  }

  /** The hash of some bytes: 32 bytes. */
  public static byte[] of(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no SHA-256", e);
    }
  }
}
