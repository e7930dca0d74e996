package io.icebergcrypto.kms.http;

import io.icebergcrypto.IcebergCryptoException;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The access token of a login, and when another one is asked for: a while before it ends, and at
 * once after the credentials were replaced. While the login is out of order, the token stays in use
 * as long as it is good, and the login is asked every 30 seconds.
 *
 * @param <T> what a request shows of the token
 */
public final class HeldToken<T> {
  private static final Logger LOG = LoggerFactory.getLogger(HeldToken.class);

  /** A token that lasts so long is used where there is no other. */
  private static final Duration ONE_CALL = Duration.ofSeconds(30);

  private static final Duration BETWEEN_RENEWALS = Duration.ofSeconds(30);

  private final Object login;
  private final Duration enough;
  private volatile Held<T> held;
  private volatile Instant nextRenewal = Instant.MIN;
  private volatile boolean replaced; // the credentials, since the token that is held

  private record Held<T>(T token, Instant ends) {
    boolean lasts(Duration time) {
      return ends.isAfter(Instant.now().plus(time));
    }

    @Override
    public String toString() {
      return "until " + ends;
    }
  }

  /**
   * Holds none yet.
   *
   * @param login what the log calls the login
   * @param enough a token that ends sooner is renewed
   */
  public HeldToken(Object login, Duration enough) {
    this.login = login;
    this.enough = enough;
  }

  /**
   * The token to use now.
   *
   * @param renewal logs in, and {@linkplain #hold holds} what it returns
   * @throws IcebergCryptoException of the renewal, when the token that is held is not good
   */
  public T get(Supplier<T> renewal) {
    Held<T> now = held;
    if (now != null && !replaced && now.lasts(enough)) {
      return now.token();
    }

    boolean stillGood = now != null && now.lasts(ONE_CALL);
    if (stillGood && Instant.now().isBefore(nextRenewal)) {
      return now.token();
    }

    this.nextRenewal = Instant.now().plus(BETWEEN_RENEWALS); // however this one ends
    try {
      return renewal.get();
    } catch (IcebergCryptoException e) {
      if (!stillGood) { // the service decides how long it is, in an outage of the login, too
        throw e;
      }

      LOG.warn(
          "{}: no new token, so the previous one stays in use until {}: {}",
          login,
          now.ends(),
          e.problem());
      return now.token();
    }
  }

  /**
   * Takes up a token.
   *
   * @param ends when it does; null: not known, so it is used once
   */
  public void hold(T token, Instant ends) {
    this.held = ends == null ? null : new Held<>(token, ends);
    this.replaced = false;
  }

  /**
   * The token to use while another thread logs in, which may take long. It is not used after the
   * credentials were replaced: the old ones may have been allowed less.
   *
   * @param login held by who logs in
   * @return null when no other thread does, or the token that is held is not good
   */
  public T during(ReentrantLock login) {
    Held<T> now = held;
    boolean anothers = login.isLocked() && !login.isHeldByCurrentThread();
    return anothers && !replaced && now != null && now.lasts(ONE_CALL) ? now.token() : null;
  }

  /** Whether this token is held. */
  public boolean isHeld(T token) {
    Held<T> now = held;
    return now != null && now.token().equals(token);
  }

  /** Gives the token up: it was refused. */
  public void forget() {
    this.held = null;
  }

  /** Has the next call log in: the credentials were replaced. */
  public void expectAnother() {
    this.replaced = true;
    this.nextRenewal = Instant.MIN;
  }

  @Override
  public String toString() {
    return "a token";
  }
}
