package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.kms.config.SecretHash;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * What this process knows of the pins of one token: the one that it is logged in with, and those
 * that the token has refused. A refused pin is not tried again, because a token counts wrong pins
 * and locks itself. Pins are kept as hashes ({@link SecretHash}).
 */
final class Pkcs11Pins {
  private record Slot(String library, long slot) {}

  private static final ConcurrentMap<Slot, Pkcs11Pins> OF_SLOTS = new ConcurrentHashMap<>();

  private final Set<String> refused = new HashSet<>();
  private String accepted;

  private Pkcs11Pins() {}

  static Pkcs11Pins of(String library, long slot) {
    return OF_SLOTS.computeIfAbsent(new Slot(library, slot), ignored -> new Pkcs11Pins());
  }

  /** Whether the token has refused this pin. */
  synchronized boolean isRefused(String pin) {
    return refused.contains(SecretHash.of(pin));
  }

  /** Whether this process is logged in with this pin. */
  synchronized boolean isAccepted(String pin) {
    return SecretHash.of(pin).equals(accepted);
  }

  /** Whether this process has logged in, with another pin than this. */
  synchronized boolean isLoggedInWithAnother(String pin) {
    return accepted != null && !isAccepted(pin);
  }

  synchronized void accepted(String pin) {
    this.accepted = SecretHash.of(pin);
  }

  synchronized void refused(String pin) {
    refused.add(SecretHash.of(pin));
  }

  synchronized void loggedOut() {
    this.accepted = null;
  }
}
