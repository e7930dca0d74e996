package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.config.SecretSource;
import java.io.IOException;
import java.io.Serializable;
import java.security.AuthProvider;
import java.security.GeneralSecurityException;
import java.security.Provider;
import java.security.ProviderException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import javax.security.auth.login.LoginException;

/**
 * A token in this JVM, shared by all clients that name it: one provider, one login. A process is
 * logged in to a token as a whole (PKCS#11 2.40, section 2.6.4), so the token stays logged in when
 * a client is closed: others of the process may use it, ours or not.
 */
final class Pkcs11Token {
  /**
   * How a token is named.
   *
   * @param library the PKCS#11 library
   * @param slot the slot's id; null when it is found by the label
   * @param label the token's label; null when the slot is given
   */
  record Place(String library, Long slot, String label) implements Serializable {
    @Override
    public String toString() {
      String which = label == null ? "slot " + slot : "token '" + label + "'";
      return String.format("PKCS#11 %s of %s", which, library);
    }
  }

  private static final ConcurrentMap<Place, Pkcs11Token> TOKENS = new ConcurrentHashMap<>();

  private final Place place;
  private volatile Pkcs11Session session;
  private volatile Pkcs11Pins pins;

  private Pkcs11Token(Place place) {
    this.place = place;
  }

  /** The one of this JVM. */
  static Pkcs11Token at(Place place) {
    return TOKENS.computeIfAbsent(place, Pkcs11Token::new);
  }

  /**
   * A session of a client that was not there before: the token must have taken this very pin, or
   * take it now.
   *
   * @param doing what it is for, for an error
   * @throws IcebergCryptoException when the PIN is refused or the token cannot be used
   */
  synchronized Pkcs11Session join(SecretSource source, String doing) {
    String pin = source.read();
    Pkcs11Session current = session;
    if (current == null || !pins.isAccepted(pin)) {
      current = login(pin, source, doing);
    }

    return current;
  }

  /**
   * The session of clients that have joined.
   *
   * @return null before the first login
   */
  Pkcs11Session session() {
    return session;
  }

  /**
   * A session instead of one that has ended. The first caller makes it, the others get it.
   *
   * @param doing what it is for, for an error
   * @throws IcebergCryptoException when the token cannot be used
   */
  synchronized Pkcs11Session renew(Pkcs11Session ended, SecretSource source, String doing) {
    if (session == ended) {
      login(source.read(), source, doing);
    }

    return session;
  }

  /**
   * A session that knows the keys that the token has now; without a login.
   *
   * @return one that shows no key is not the token's from now on: it may need a login
   * @throws GeneralSecurityException when the session has ended
   * @throws IOException as well
   */
  synchronized Pkcs11Session lookAgain(Pkcs11Session old)
      throws GeneralSecurityException, IOException {
    if (session != old) {
      return session;
    }

    Pkcs11Session now = old.lookedAtAgain();
    if (!now.isEmpty()) {
      this.session = now;
    }

    return now;
  }

  private Pkcs11Session login(String pin, SecretSource source, String doing) {
    try {
      long slot = place.slot() != null ? place.slot() : slotOfLabel(doing);
      Pkcs11Pins known = Pkcs11Pins.of(place.library(), slot);
      // one login at a time, under any name of the token
      synchronized (known) {
        this.pins = known;
        this.session = login(slot, pin, known, source, doing);
      }

      return session;
    } catch (GeneralSecurityException | IOException | ProviderException e) {
      throw Pkcs11Errors.typed(e, place.toString(), doing);
    }
  }

  private Pkcs11Session login(
      long slot, String pin, Pkcs11Pins known, SecretSource source, String doing)
      throws GeneralSecurityException, IOException {
    if (known.isRefused(pin)) {
      throw new LoginFailedException(
          String.format(
              "%s could not %s: login refused, the pin in %s is still the wrong one",
              place, doing, source),
          "Put the right pin there. It is not tried again as it is: a token locks itself after a"
              + " few wrong ones. If the token's pin was changed to this one since then, start a"
              + " new process.");
    }

    Provider provider = Pkcs11Library.open(place.library(), "slot = " + slot);
    if (known.isLoggedInWithAnother(pin)) {
      // SunPKCS11 would not look at the pin: the process is logged in
      logout(provider);
      known.loggedOut();
    }

    char[] characters = pin.toCharArray();
    try {
      Pkcs11Session made = new Pkcs11Session(provider, characters);
      known.accepted(pin);
      return made;
    } catch (IOException e) {
      if (Pkcs11Errors.isWrongPin(e)) {
        known.refused(pin);
      }
      throw e;
    } finally {
      Arrays.fill(characters, '\0');
    }
  }

  private static void logout(Provider provider) throws LoginException {
    if (provider instanceof AuthProvider login) {
      login.logout();
    }
  }

  private long slotOfLabel(String doing) {
    Pkcs11Slots.Found shown = Pkcs11Slots.look(place.library());
    Map<Long, String> labels = shown.labels();
    List<Long> found = new ArrayList<>();
    labels.forEach(
        (slot, label) -> {
          if (Pkcs11Slots.matches(label, place.label())) {
            found.add(slot);
          }
        });
    if (found.size() == 1) {
      return found.get(0);
    }

    if (found.size() > 1) {
      throw new InvalidConfigurationException(
          String.format("%s could not %s: %d tokens have this label", place, doing, found.size()),
          String.format("Name the slot instead, with %s: one of %s.", Pkcs11Config.SLOT, found));
    }

    if (shown.failure() != null) {
      throw shown.failure(); // perhaps it is the one that could not be looked at
    }

    if (session != null || labels.isEmpty()) {
      throw new KmsUnavailableException(
          String.format(
              "%s could not %s: %s",
              place,
              doing,
              session == null
                  ? "the library shows no token at all"
                  : "the token is gone; it was there before"),
          "Check that the HSM is up and reachable, and the library's own configuration.");
    }

    throw new InvalidConfigurationException(
        String.format("%s could not %s: no token has this label", place, doing),
        "The library shows tokens with these labels: " + String.join(", ", labels.values()) + ".");
  }
}
