package io.icebergcrypto.kms.vault;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.DaemonThreads;
import io.icebergcrypto.kms.http.JsonHttp;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The token of one Vault client in one JVM: read from its file or variable each time, so that a
 * rotated one is used, or made by a login. A renewable token is renewed in the background after two
 * thirds of its life, for a job may be silent for longer than its token lives. One that cannot be
 * renewed any more is replaced then, so that a login that fails is tried again while the old token
 * lives.
 *
 * <p>Times are counted from Vault's answers by this JVM's monotonic clock; no two clocks need to
 * agree.
 */
final class VaultLogin {
  private static final Logger LOG = LoggerFactory.getLogger(VaultLogin.class);
  static final String LOOKUP = "auth/token/lookup-self";
  private static final String RENEW = "auth/token/renew-self";
  private static final Duration FRESH = Duration.ofSeconds(60);
  private static final Duration SHORTEST_RENEWAL = Duration.ofSeconds(1);

  /**
   * One thread a JVM that waits, only there when a token is to be renewed, and for each renewal
   * that is under way another one: a Vault that does not answer keeps no other's waiting.
   */
  private static final class Renewals {
    private static final ScheduledThreadPoolExecutor TIMER =
        DaemonThreads.timer("iceberg-crypto-vault-renewal-timer");
    private static final ExecutorService CALLS =
        Executors.newCachedThreadPool(new DaemonThreads("iceberg-crypto-vault-renewal"));
  }

  /**
   * A token in use.
   *
   * @param startNanos when it was got, by System.nanoTime()
   * @param endNanos when it ends; null when it does not, or when that is not known
   * @param lifeSeconds how long it lived at first; a renewal that gives much less is its last
   * @param renewable whether Vault renews it
   */
  private record Held(
      String token, long startNanos, Long endNanos, long lifeSeconds, boolean renewable) {
    static Held of(String token, long seconds, boolean renewable) {
      return new Held(token, System.nanoTime(), end(seconds), seconds, renewable);
    }

    /** What a renewal or its refusal makes of it. */
    Held renewed(long seconds) {
      return new Held(token, startNanos, end(seconds), lifeSeconds, true);
    }

    Held notRenewable() {
      return new Held(token, startNanos, endNanos, lifeSeconds, false);
    }

    private static Long end(long seconds) {
      return seconds <= 0 ? null : System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    }

    boolean nearsItsEnd() {
      return left().toSeconds() < lifeSeconds / 2;
    }

    boolean isFresh() {
      return System.nanoTime() - startNanos < FRESH.toNanos();
    }

    boolean ended() {
      return endNanos != null && System.nanoTime() - endNanos >= 0;
    }

    Duration left() {
      return Duration.ofNanos(endNanos - System.nanoTime());
    }

    @Override
    public String toString() {
      return "a token";
    }
  }

  private final VaultConfig config;
  private final VaultHttp http;
  private final ReentrantLock lock = new ReentrantLock();
  private final AtomicReference<Held> held = new AtomicReference<>();
  private final AtomicBoolean refreshing = new AtomicBoolean();
  private volatile boolean closed;
  private volatile boolean used; // since the last login

  VaultLogin(VaultConfig config, VaultHttp http) {
    this.config = config;
    this.http = http;
  }

  /**
   * The token to use now.
   *
   * @throws LoginFailedException when Vault refuses the login
   * @throws InvalidConfigurationException when the secret is not where it should be
   * @throws KmsUnavailableException when Vault does not answer
   */
  String token() {
    Held now = held.get();
    this.used = true;
    if (config.auth() == null) {
      Optional<String> there = config.token().readIfThere();
      if (there.isEmpty() && now != null && !now.ended()) {
        LOG.warn(
            "{}: the {} is not there, so the previous one stays in use", config, config.login());
        return now.token();
      }

      String token = checked(there.orElseGet(config.token()::readSettled));
      return now != null && now.token().equals(token) ? token : locked(() -> adopt(token));
    }

    return now != null && !now.ended() ? now.token() : locked(() -> login(now));
  }

  /**
   * Looks for another token after Vault refused one. A login is made only when the token itself is
   * no good: each leaves a token in Vault and may use up an AppRole's secret id.
   *
   * @param refused the token
   * @param dead whether Vault said that it is no longer a token; when not, the token may be good
   *     and its policies the reason
   * @return true when {@link #token()} now gives another one
   */
  boolean replaced(String refused, boolean dead) {
    if (config.auth() == null) {
      return !token().equals(refused);
    }

    Held now = held.get();
    boolean replacedAlready = now != null && !now.token().equals(refused);
    if (!dead && !replacedAlready && isGood(refused, now)) {
      return false;
    }

    try {
      return !(replacedAlready ? now.token() : locked(() -> login(now))).equals(refused);
    } catch (LoginFailedException | KmsUnavailableException e) {
      if (dead) {
        throw e;
      }
      return false;
    }
  }

  /**
   * Whether a new login would bring nothing. A token that may not look at itself counts as good
   * while it is fresh.
   */
  private boolean isGood(String token, Held now) {
    return http.get(LOOKUP, token).status() == 200 || now != null && now.isFresh();
  }

  /** Stops the renewals. The token ends by itself. */
  void close() {
    this.closed = true;
    held.set(null);
  }

  /** One caller at a time; the others wait no longer than a call may take, as Vault may be down. */
  private String locked(Supplier<String> step) {
    return config.timeLimit().alone(lock, config + ": another thread's login did not finish", step);
  }

  /** Takes up a token that the user gave: how long does it live, and can it be renewed? */
  private String adopt(String token) {
    Held now = held.get();
    if (now == null || !now.token().equals(token)) {
      JsonHttp.Answer answer = http.get(LOOKUP, token);
      JsonObject data = JsonHttp.object(answer.body(), "data");
      if (answer.status() == 200 && !data.has("ttl")) {
        return token; // a maintenance page, say: it is looked at again with the next call
      }

      if (now != null && !now.ended() && isNoToken(answer) && isGood(now.token(), null)) {
        LOG.warn(
            "{}: the {} is not valid, so the previous one stays in use", config, config.login());
        return now.token(); // half of a token, which is still being written, is read again
      }

      // A token may be barred from looking at itself; a bad one is reported when it is used.
      boolean renewable = answer.status() == 200 && JsonHttp.isTrue(data, "renewable");
      hold(Held.of(token, JsonHttp.number(data, "ttl"), renewable));
    }

    return token;
  }

  private static boolean isNoToken(JsonHttp.Answer answer) {
    return answer.status() == 403 && VaultHttp.message(answer).contains(VaultErrors.INVALID_TOKEN);
  }

  private String login(Held before) {
    Held now = held.get();
    if (now != null && (before == null || !now.token().equals(before.token()))) {
      return now.token(); // another thread was faster
    }

    VaultAuth auth = config.auth();
    String secret = auth.secret() == null ? "" : checked(auth.secret().readSettled());
    if (auth.secret() != null) {
      VaultRefusals.told(config, secret)
          .ifPresent(
              told -> {
                throw loginRefused(told);
              });
    }

    JsonHttp.Answer answer = http.post("auth/" + auth.mount() + "/login", null, auth.body(secret));
    JsonObject made = JsonHttp.object(answer.body(), "auth");
    String token = JsonHttp.text(made, "client_token");
    if (answer.status() < 300 && token.isEmpty()) {
      throw http.notVault(answer);
    }

    if (answer.status() >= 300) {
      if (auth.secret() != null) {
        VaultRefusals.remember(config, secret, VaultHttp.told(answer));
      }

      throw loginRefused(VaultHttp.told(answer));
    }

    this.used = false;
    hold(
        Held.of(
            checked(token),
            JsonHttp.number(made, "lease_duration"),
            JsonHttp.isTrue(made, "renewable")));
    return token;
  }

  /** Vault says 400 for a bad secret, and 403 for a login method that is not there. */
  private IcebergCryptoException loginRefused(String told) {
    VaultAuth auth = config.auth();
    return new LoginFailedException(
        String.format(
            "%s: login refused at auth/%s for the %s %s", config, auth.mount(), auth, told),
        auth.advice()
            + (auth.secret() == null
                ? ""
                : String.format(
                    " The same secret is tried again after %d s, another one immediately.",
                    VaultRefusals.PAUSE.toSeconds())));
  }

  private void hold(Held token) {
    held.set(token);
    schedule(token);
  }

  private void schedule(Held token) {
    boolean replaceable = token.renewable() || config.auth() != null;
    if (token.endNanos() == null || !replaceable || closed) {
      return;
    }

    Duration delay = token.left().multipliedBy(2).dividedBy(3);
    if (delay.compareTo(SHORTEST_RENEWAL) >= 0) {
      // the timer must not keep this login, or a token, in memory
      WeakReference<VaultLogin> self = new WeakReference<>(this);
      WeakReference<Held> due = new WeakReference<>(token);
      Renewals.TIMER.schedule(
          () -> {
            VaultLogin login = self.get();
            Held then = due.get();
            if (login != null && !login.closed && then != null && login.held.get() == then) {
              Renewals.CALLS.execute(() -> login.refreshAlone(then));
            }
          },
          delay.toMillis(),
          TimeUnit.MILLISECONDS);
    }
  }

  /** One renewal at a time; that of an older token ends soon, and this one's turn comes again. */
  private void refreshAlone(Held token) {
    if (!refreshing.compareAndSet(false, true)) {
      schedule(token);
      return;
    }

    try {
      refresh(token);
    } finally {
      refreshing.set(false);
    }
  }

  /**
   * Has a token that is still good renewed, or takes another one in its place. When neither
   * succeeds, because Vault is down or shows a maintenance page, it is tried again later, as long
   * as the token lives.
   */
  private void refresh(Held token) {
    Held next = token;
    try {
      next = token.renewable() ? renewed(token) : token;
    } catch (RuntimeException e) {
      tellLater("is not renewed yet", e);
    }

    try {
      if (config.auth() != null && used && !closed && next.nearsItsEnd()) {
        locked(() -> login(token));
        return;
      }
    } catch (RuntimeException e) {
      tellLater("made no new token yet", e);
    }

    if (held.compareAndSet(token, next)) {
      schedule(next);
    }
  }

  private Held renewed(Held token) {
    JsonHttp.Answer answer = http.post(RENEW, token.token(), new JsonObject());
    if (answer.status() >= 300) {
      LOG.warn("{} does not renew the {} {}", config, config.login(), VaultHttp.told(answer));
      return token.notRenewable();
    }

    long seconds = JsonHttp.number(JsonHttp.object(answer.body(), "auth"), "lease_duration");
    if (seconds <= 0) {
      throw http.notVault(answer);
    }

    return token.renewed(seconds);
  }

  private void tellLater(String what, RuntimeException e) {
    LOG.warn(
        "{}: the {} {}: {}",
        config,
        config.login(),
        what,
        e instanceof IcebergCryptoException known ? known.problem() : e);
  }

  /** A header's value, checked here because the HTTP client's own error would show it. */
  private String checked(String secret) {
    if (!secret.matches("[\\x21-\\x7e]+")) {
      throw new InvalidConfigurationException(
          String.format(
              "%s: login refused: the %s has characters that no secret of Vault's has",
              config, config.login()),
          "It must be the bare text that Vault gave, on one line.");
    }

    return secret;
  }
}
