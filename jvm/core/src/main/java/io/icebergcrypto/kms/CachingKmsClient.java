package io.icebergcrypto.kms;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.kms.call.Resilience;
import io.icebergcrypto.kms.call.SharedKeys;
import io.icebergcrypto.kms.call.TableBinding;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.kms.http.HeaderValues;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The decorator that every KMS client goes through: a cache of unwrapped keys, calls again when the
 * KMS was unavailable ({@link Resilience}), and counters. There is one per catalog, shared by all
 * its tables.
 *
 * <p>It travels to executors with a table. What travels is the client below (which carries
 * references to its credentials, never the credentials) and an id; keys and counters stay. All
 * copies of one id in one JVM share one client and one cache, so an executor logs in once and asks
 * the KMS once per key, not once per task.
 */
public final class CachingKmsClient implements UnwrapsAgain, AuthenticatedWrapping, TableBinding {
  private static final long serialVersionUID = 1L;

  private static final Logger LOG = LoggerFactory.getLogger(CachingKmsClient.class);

  private final KeyManagementClient client;
  private final long ttlMs;
  private final Resilience.Limits limits;
  private final boolean authenticatedWrapping;
  private final String application;
  private final String id;

  private transient volatile ClientState local;

  /**
   * Puts the decorator in front of a client.
   *
   * @param authenticatedWrapping what the user says about a client that does not say it itself
   * @param application the id that requests carry; null: none
   */
  CachingKmsClient(
      KeyManagementClient client,
      long ttlMs,
      Resilience.Limits limits,
      boolean authenticatedWrapping,
      String application) {
    this.client = client;
    this.authenticatedWrapping = authenticatedWrapping;
    this.ttlMs = ttlMs;
    this.limits = limits;
    this.application = application;
    this.id = UUID.randomUUID().toString();
  }

  /** Has what this JVM keeps for it closed when it is garbage: Spark closes no catalog. */
  CachingKmsClient closedAsGarbage() {
    String here = id; // not this
    SharedKeys.whenGarbage(this, () -> ClientState.giveUp(here));
    return this;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    ByteBuffer wrapped = callWrap(key, wrappingKeyId);
    local().cache().put(wrappingKeyId, wrapped, key);
    return wrapped;
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    ClientState here = local();
    return here.cache()
        .get(
            wrappingKeyId, wrappedKey, () -> callUnwrap(wrappedKey, wrappingKeyId), here.metrics());
  }

  @Override
  public void forget(ByteBuffer wrappedKey, String wrappingKeyId) {
    local().cache().forget(wrappingKeyId, wrappedKey);
  }

  /** Whether a key that is unwrapped is in the cache afterwards. */
  boolean keepsKeys() {
    return local().cache().keeps();
  }

  /** What the client says; else what the user says, or no. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return client instanceof AuthenticatedWrapping knows
        ? knows.authenticatesWrapping(wrappingKeyId)
        : authenticatedWrapping;
  }

  /** What the client says; one that says nothing does not. */
  @Override
  public boolean bindsTable() {
    return client instanceof TableBinding binding && binding.bindsTable();
  }

  /**
   * Proves that a master key can be used: wraps a random key and unwraps it again, past the cache.
   *
   * @param wrappingKeyId the master key's id
   * @throws IcebergCryptoException the KMS's own typed error when it cannot
   */
  public void check(String wrappingKeyId) {
    byte[] probe = new byte[16];
    new SecureRandom().nextBytes(probe);
    boolean comesBack =
        CallContext.boundTo(
            CallContext.NO_TABLE,
            () -> {
              ByteBuffer wrapped = callWrap(ByteBuffer.wrap(probe.clone()), wrappingKeyId);
              return UnwrapsAgain.comesBack(
                  ByteBuffer.wrap(probe), () -> callUnwrap(wrapped, wrappingKeyId));
            });
    if (!comesBack) {
      throw UnwrapsAgain.otherBytes(this, wrappingKeyId);
    }
  }

  /**
   * Unwraps past the cache, so that the KMS itself answers. The cache does not keep the key.
   *
   * @throws IcebergCryptoException the KMS's own typed error
   */
  public ByteBuffer unwrapPastCache(ByteBuffer wrappedKey, String wrappingKeyId) {
    return callUnwrap(wrappedKey, wrappingKeyId);
  }

  /**
   * Proves that a master key wraps, past the cache, by one call with a random key that is not kept.
   *
   * @return the key that was wrapped
   * @throws IcebergCryptoException the KMS's own typed error when it does not
   */
  public ByteBuffer tryWrap(String wrappingKeyId) {
    byte[] probe = new byte[16];
    new SecureRandom().nextBytes(probe);
    return callWrap(ByteBuffer.wrap(probe), wrappingKeyId);
  }

  /**
   * The version of a master key that wraps now, by one call with a random key that is not kept.
   *
   * @return empty when wrapped keys do not say
   * @throws IcebergCryptoException the KMS's own typed error when it does not wrap
   */
  public OptionalInt wrappingVersion(String wrappingKeyId) {
    ByteBuffer wrapped = CallContext.boundTo(CallContext.NO_TABLE, () -> tryWrap(wrappingKeyId));
    return WrappedKey.versionOf(wrapped, wrappingKeyId);
  }

  /** How long the KMS is not called after calls that got no answer, in milliseconds. */
  public long breakerDelayMs() {
    return limits.breakerDelayMs();
  }

  /** The counters of this JVM. */
  public KmsMetrics metrics() {
    return local().metrics();
  }

  /** The counters of this JVM by name, with the KMS and the number of keys in memory. */
  public Map<String, Object> snapshot() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("kms", toString());
    values.putAll(metrics().snapshot());
    values.put("cached_keys", local().cache().size());
    values.put("circuit", local().resilience().circuit());
    values.put("keys_left_alone", local().resilience().keysLeftAlone());
    return values;
  }

  /** Forgets and overwrites the keys in this JVM's memory and closes the client below. */
  @Override
  public void close() {
    local().close();
  }

  /**
   * The KMS and where it is, for one of ours; else the name of its class: what another's own class
   * says of itself may be a secret, and goes into errors, logs and signed reports.
   */
  @Override
  public String toString() {
    return client instanceof ConfiguredKmsClient ? client.toString() : client.getClass().getName();
  }

  ClientState local() {
    ClientState here = local;
    if (here == null || here.isClosed()) {
      KmsMetrics metrics = here == null ? new KmsMetrics() : here.metrics();
      here = ClientState.of(id, client, ttlMs, limits, metrics);
      this.local = here;
    }

    return here.use();
  }

  private ByteBuffer callWrap(ByteBuffer key, String wrappingKeyId) {
    return call(
        () -> local().client().wrapKey(key.duplicate(), wrappingKeyId),
        "wrap with",
        wrappingKeyId,
        local().metrics()::wrapped);
  }

  private ByteBuffer callUnwrap(ByteBuffer wrappedKey, String wrappingKeyId) {
    return call(
        () -> local().client().unwrapKey(wrappedKey.duplicate(), wrappingKeyId),
        "unwrap with",
        wrappingKeyId,
        local().metrics()::unwrapped);
  }

  /** Calls the KMS; each attempt counts as a call, with its time. */
  private <T> T call(
      Supplier<T> operation, String what, String wrappingKeyId, LongConsumer countCall) {
    ClientState here = local();
    Supplier<T> attempt =
        () -> {
          long start = System.nanoTime();
          String outcome = "ok";
          try {
            return CallContext.as(application, operation);
          } catch (RuntimeException | LinkageError e) {
            here.metrics().add(KmsMetrics.Count.ERRORS, 1);
            LinkageError library = KmsType.linkageError(e);
            IcebergCryptoException typed =
                library == null
                    ? typed((RuntimeException) e, what, wrappingKeyId)
                    : KmsType.missingLibrary(client.getClass().getName(), library);
            outcome = typed.getClass().getSimpleName();
            throw typed;
          } finally {
            long nanos = System.nanoTime() - start;
            countCall.accept(nanos);
            log(what, wrappingKeyId, nanos, outcome);
          }
        };
    return here.resilience().call(attempt, toString(), wrappingKeyId);
  }

  /** One line a call, without keys. Key ids and names may be any text. */
  private void log(String what, String wrappingKeyId, long nanos, String outcome) {
    if (LOG.isDebugEnabled()) {
      LOG.debug(
          "{}: {} key '{}' for table {}, {} ms: {}",
          this,
          what,
          onOneLine(wrappingKeyId),
          onOneLine(Objects.requireNonNullElse(CallContext.table(), "(none)")),
          TimeUnit.NANOSECONDS.toMillis(nanos),
          outcome);
    }
  }

  private static String onOneLine(String text) {
    return text.replaceAll("\\p{Cntrl}", "?");
  }

  /** The error of a client that does not throw ours: a user's own, or one of Iceberg's. */
  private IcebergCryptoException typed(RuntimeException error, String what, String wrappingKeyId) {
    if (error instanceof IcebergCryptoException typed) {
      return typed;
    }

    if (HeaderValues.areQuotedBy(error)) {
      return HeaderValues.refused(this + ", for key '" + wrappingKeyId + "'");
    }

    String problem =
        String.format("%s could not %s key '%s': %s", this, what, wrappingKeyId, error);
    if (Causes.any(error, e -> e instanceof IOException || e instanceof UncheckedIOException)) {
      return new KmsUnavailableException(
          problem, "Check that the KMS runs and can be reached from this host.", error);
    }

    return new IcebergCryptoException(
        problem,
        "Check that the key exists and is enabled, and that this login may use it.",
        error);
  }
}
