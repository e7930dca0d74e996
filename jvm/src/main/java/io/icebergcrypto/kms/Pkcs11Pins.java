package io.icebergcrypto.kms;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * What this process knows of the pins of one token: the one that it is logged in with, and those
 * that the token has refused. A refused pin is not tried again, because a token counts wrong pins
 * and locks itself. Pins are kept as HMACs under a key of this process, so that none stands in a
 * heap dump; who reads the whole memory can still try all short ones.
 */
final class Pkcs11Pins {
  private record Slot(String library, long slot) {}

  private static final ConcurrentMap<Slot, Pkcs11Pins> OF_SLOTS = new ConcurrentHashMap<>();
  private static final SecretKeySpec KEY = randomKey();

  private final Set<String> refused = new HashSet<>();
  private String accepted;

  private Pkcs11Pins() {}

  static Pkcs11Pins of(String library, long slot) {
    return OF_SLOTS.computeIfAbsent(new Slot(library, slot), ignored -> new Pkcs11Pins());
  }

  /** Whether the token has refused this pin. */
  synchronized boolean isRefused(String pin) {
    return refused.contains(hash(pin));
  }

  /** Whether this process is logged in with this pin. */
  synchronized boolean isAccepted(String pin) {
    return hash(pin).equals(accepted);
  }

  /** Whether this process has logged in, with another pin than this. */
  synchronized boolean isLoggedInWithAnother(String pin) {
    return accepted != null && !isAccepted(pin);
  }

  synchronized void accepted(String pin) {
    this.accepted = hash(pin);
  }

  synchronized void refused(String pin) {
    refused.add(hash(pin));
  }

  synchronized void loggedOut() {
    this.accepted = null;
  }

  private static String hash(String pin) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(KEY);
      return new String(
          mac.doFinal(pin.getBytes(StandardCharsets.UTF_8)), StandardCharsets.ISO_8859_1);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has HmacSHA256", e);
    }
  }

  private static SecretKeySpec randomKey() {
    byte[] key = new byte[32];
    new SecureRandom().nextBytes(key);
    return new SecretKeySpec(key, "HmacSHA256");
  }
}
