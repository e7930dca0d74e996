package io.icebergcrypto.format;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** SHA-256 (FIPS 180-4), as sha256sum prints it, and HMAC-SHA-256 (RFC 2104). */
public final class Sha256 {
  private static final String HMAC = "HmacSHA256";

  private Sha256() {}

  /** The hash of some bytes: 64 hex digits in lower case. */
  public static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(of(bytes));
  }

  /** The hash of some bytes, one part after another: 32 bytes. */
  public static byte[] of(byte[]... parts) {
    try {
      MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
      Arrays.stream(parts).forEach(sha256::update);
      return sha256.digest();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no SHA-256", e);
    }
  }

  /** The HMAC of some bytes, one part after another: 32 bytes. */
  public static byte[] hmac(byte[] key, byte[]... parts) {
    try {
      Mac hmac = Mac.getInstance(HMAC);
      hmac.init(new SecretKeySpec(key, HMAC));
      for (byte[] part : parts) {
        hmac.update(part);
      }

      return hmac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("This JVM has no " + HMAC, e);
    }
  }
}
