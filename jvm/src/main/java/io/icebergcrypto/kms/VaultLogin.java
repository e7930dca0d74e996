package io.icebergcrypto.kms;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The token of one Vault client in one JVM: read from its place each time, so that one that rotates
 * is taken up, or made by an AppRole login. A renewable token is renewed in the background after
 * two thirds of its life, for a job may be silent for longer than its token lives.
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

  /** One thread a JVM, only there when a token is to be renewed. */
  private static final class Renewals {
    private static final ScheduledThreadPoolExecutor THREAD = thread();

    private static ScheduledThreadPoolExecutor thread() {
      ScheduledThreadPoolExecutor executor =
          new ScheduledThreadPoolExecutor(
              1,
              task -> {
                Thread thread = new Thread(task, "iceberg-crypto-vault-renewal");
                thread.setDaemon(true);
                return thread;
              });
      executor.setRemoveOnCancelPolicy(true);
      return executor;
    }
  }

  /**
   * A token in use.
   *
   * @param startNanos when it was got, by System.nanoTime()
   * @param endNanos when it ends; null when it does not, or when that is not known
   */
  private record Held(String token, long startNanos, Long endNanos) {
    static Held of(String token, long seconds) {
      return of(token, System.nanoTime(), seconds);
    }

    static Held of(String token, long startNanos, long seconds) {
      return new Held(
          token,
          startNanos,
          seconds <= 0 ? null : System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds));
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
  private volatile boolean closed;

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
    if (config.appRole() == null) {
      String token = checked(config.token().read());
      return now != null && now.token().equals(token) ? token : locked(() -> adopt(token));
    }

    return now != null && !now.ended() ? now.token() : locked(() -> login(now));
  }

  /**
   * Looks for another token after Vault refused one. AppRole logs in only when the token itself is
   * no good: each login leaves a token in Vault and may use up the secret id.
   *
   * @param refused the token
   * @param dead whether Vault said that it is no token any more; when not, the token may be good
   *     and its policies the reason
   * @return true when {@link #token()} now gives another one
   */
  boolean replaced(String refused, boolean dead) {
    if (config.appRole() == null) {
      return !token().equals(refused);
    }

    Held now = held.get();
    boolean replacedAlready = now != null && !now.token().equals(refused);
    if (!dead && !replacedAlready && isGood(refused, now)) {
      return false;
    }

    try {
      return !(replacedAlready ? now.token() : locked(() -> login(now))).equals(refused);
    } catch (LoginFailedException e) {
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

  /** Stops the renewals, and makes none any more. The token ends by itself. */
  void close() {
    this.closed = true;
    held.set(null);
  }

  private interface Step {
    String token();
  }

  /** One caller at a time, and none waits longer than a call may take: Vault may be down. */
  private String locked(Step step) {
    try {
      if (!lock.tryLock(config.timeoutMs(), TimeUnit.MILLISECONDS)) {
        throw new KmsUnavailableException(
            config + ": another thread's login took longer than " + config.timeoutMs() + " ms",
            "Check the network and Vault's load.");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new KmsUnavailableException(
          config + ": interrupted while another thread logged in", "The query was cancelled.", e);
    }

    try {
      return step.token();
    } finally {
      lock.unlock();
    }
  }

  /** Takes up a token that stands somewhere: how long does it live, and can it be renewed? */
  private String adopt(String token) {
    Held now = held.get();
    if (now == null || !now.token().equals(token)) {
      JsonHttp.Answer answer = http.get(LOOKUP, token);
      JsonObject data = JsonHttp.object(answer.body(), "data");
      // A token may be barred from looking at itself; one that is bad is told of when it is used.
      Held taken = Held.of(token, answer.status() == 200 ? VaultHttp.number(data, "ttl") : 0);
      held.set(taken);
      if (answer.status() == 200 && VaultHttp.isTrue(data, "renewable")) {
        scheduleRenewal(taken);
      }
    }

    return token;
  }

  private String login(Held before) {
    Held now = held.get();
    if (now != null && (before == null || !now.token().equals(before.token()))) {
      return now.token(); // another thread was faster
    }

    VaultConfig.AppRole role = config.appRole();
    String secretId = checked(role.secretId().read());
    VaultRefusals.told(config, secretId)
        .ifPresent(
            told -> {
              throw loginRefused(told);
            });

    JsonObject body = new JsonObject();
    body.addProperty("role_id", role.roleId());
    body.addProperty("secret_id", secretId);
    JsonHttp.Answer answer = http.post("auth/" + role.mount() + "/login", null, body);
    JsonObject auth = JsonHttp.object(answer.body(), "auth");
    String token = answer.status() == 200 ? VaultHttp.text(auth, "client_token") : "";
    if (token.isEmpty()) {
      if (answer.status() >= 400) {
        VaultRefusals.remember(config, secretId, VaultHttp.told(answer));
      }

      throw loginRefused(VaultHttp.told(answer));
    }

    Held made = Held.of(checked(token), VaultHttp.number(auth, "lease_duration"));
    held.set(made);
    if (VaultHttp.isTrue(auth, "renewable")) {
      scheduleRenewal(made);
    }

    return made.token();
  }

  /** Vault says 400 for a bad secret, and 403 for a login method that is not there. */
  private IcebergCryptoException loginRefused(String told) {
    String mount = "auth/" + config.appRole().mount();
    return new LoginFailedException(
        String.format("%s: login refused at %s for the %s %s", config, mount, config.login(), told),
        String.format(
            "Check the role id, and that the secret id is of this role and neither expired nor used"
                + " up (a new one: vault write -f %s/role/NAME/secret-id). If AppRole is not at %s,"
                + " set %s. The same secret id is tried again after %d s, another one at once.",
            mount, mount, VaultConfig.APPROLE_MOUNT, VaultRefusals.PAUSE.toSeconds()));
  }

  private void scheduleRenewal(Held token) {
    if (token.endNanos() == null || closed) {
      return;
    }

    Duration delay = token.left().multipliedBy(2).dividedBy(3);
    if (delay.compareTo(SHORTEST_RENEWAL) >= 0) {
      // the thread must not keep alive what nobody else holds, nor a token in memory
      WeakReference<VaultLogin> self = new WeakReference<>(this);
      WeakReference<Held> due = new WeakReference<>(token);
      Renewals.THREAD.schedule(
          () -> {
            VaultLogin login = self.get();
            Held then = due.get();
            if (login != null && !login.closed && then != null && login.held.get() == then) {
              login.renew(then);
            }
          },
          delay.toMillis(),
          TimeUnit.MILLISECONDS);
    }
  }

  private void renew(Held token) {
    Held renewed = token;
    try {
      JsonHttp.Answer answer = http.post(RENEW, token.token(), new JsonObject());
      JsonObject auth = JsonHttp.object(answer.body(), "auth");
      if (answer.status() != 200) {
        LOG.warn("{} does not renew the {} {}", config, config.login(), VaultHttp.told(answer));
        return;
      }

      renewed =
          Held.of(token.token(), token.startNanos(), VaultHttp.number(auth, "lease_duration"));
    } catch (KmsUnavailableException e) {
      LOG.warn("{}: the {} is not renewed yet: {}", config, config.login(), e.problem());
    } catch (RuntimeException e) {
      LOG.warn("{}: the {} is not renewed", config, config.login(), e);
      return;
    }

    if (held.compareAndSet(token, renewed)) {
      scheduleRenewal(renewed);
    }
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
