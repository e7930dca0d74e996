package io.icebergcrypto.orc;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.parquet.WrappedDataKeys;
import io.icebergcrypto.parquet.WrappedDataKeys.DataKey;
import java.security.Key;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.impl.HadoopShims.KeyMetadata;
import org.apache.orc.impl.HadoopShims.KeyProviderKind;
import org.apache.orc.impl.KeyProvider;
import org.apache.orc.impl.LocalKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * ORC's source of keys over every KMS of this project. Its settings are those of a catalog, below
 * {@link KmsProperties#HADOOP_PREFIX} in the Hadoop configuration; none of them is a secret. Each
 * encrypted column of a file has a random key of its own, which is in the file, wrapped ({@link
 * WrappedDataKeys}).
 *
 * <p>ORC takes an IOException, or null, for a reader who may not use a key, and shows the mask.
 * Only that returns null here: any other failure, such as a KMS that is away, fails the query.
 */
public final class OrcKeyProvider implements KeyProvider {
  /** The value of {@code orc.key.provider}; a dash and any text may follow. */
  static final String NAME = "iceberg-crypto";

  private static final Logger LOG = LoggerFactory.getLogger(OrcKeyProvider.class);

  /** ORC's versions are numbers; which version of the master key it was is in the wrapped key. */
  private static final int VERSION = 0;

  private final WrappedDataKeys keys;
  private final EncryptionAlgorithm algorithm;
  private final boolean missingKeysFail;
  private final String scope;
  private final Set<String> told = ConcurrentHashMap.newKeySet();

  /**
   * A provider with the settings of a configuration, which is not kept.
   *
   * @throws InvalidConfigurationException when they are wrong, or name no KMS
   */
  OrcKeyProvider(Configuration hadoop) {
    OrcSettings settings = new OrcSettings(hadoop);
    KmsClients.shared(hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX)); // or it is wrong
    this.keys = new WrappedDataKeys(hadoop);
    this.algorithm = settings.algorithm();
    this.missingKeysFail = settings.missingKeysFail();
    this.scope = settings.scope();
  }

  static boolean isNamedBy(String kind) {
    return kind.equals(NAME) || kind.startsWith(NAME + "-");
  }

  /**
   * Checks that the settings are those of this provider. ORC makes one provider for each name in a
   * JVM, with the settings of who comes first.
   *
   * @throws InvalidConfigurationException when they are not
   */
  void checkScope(OrcSettings settings) {
    if (!settings.scope().equals(scope)) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s already has different settings in this JVM, from the session that used it"
                  + " first",
              OrcSettings.PROVIDER, settings.provider()),
          String.format(
              "ORC keeps one key provider for each name. Set %s=%s-%s for this session: any text"
                  + " after the dash makes it a different provider.",
              OrcSettings.PROVIDER, NAME, settings.scope().substring(0, 12)));
    }
  }

  /** None: a KMS is not asked for all its keys. */
  @Override
  public List<String> getKeyNames() {
    return List.of();
  }

  @Override
  public KeyMetadata getCurrentKeyVersion(String keyName) {
    return new KeyMetadata(keyName, VERSION, algorithm);
  }

  /**
   * Makes the key of a column of one file.
   *
   * @throws IcebergCryptoException the KMS's own typed error when the master key cannot be used
   */
  @Override
  public LocalKey createLocalKey(KeyMetadata key) {
    EncryptionAlgorithm of = key.getAlgorithm();
    DataKey made = keys.create(key.getKeyName(), of.keyLength() * Byte.SIZE);
    return new LocalKey(of, made.key(), made.wrapped());
  }

  /**
   * Unwraps the key of a column of one file.
   *
   * @return null when the master key may not be used, or is not there: ORC shows the mask
   * @throws TamperedException when the wrapped key is damaged, or under another master key
   * @throws IcebergCryptoException the KMS's own typed error when it cannot be asked; and instead
   *     of null, if {@link OrcSettings#MISSING_KEYS} says so
   */
  @Override
  public Key decryptLocalKey(KeyMetadata key, byte[] encryptedKey) {
    byte[] opened;
    try {
      opened = keys.open(key.getKeyName(), encryptedKey);
    } catch (AccessDeniedException | KeyNotFoundException e) {
      if (!Causes.isOfKey(e)) {
        throw e;
      }

      if (missingKeysFail) {
        throw e.withHint(
            String.format(
                "Columns of ORC files under other keys can be read: select them by name. With"
                    + " %s=mask, the mask is read in place of this one.",
                OrcSettings.MISSING_KEYS));
      }

      if (told.add(key.getKeyName())) {
        LOG.warn("ORC columns under a key that may not be used show their masks: {}", e.problem());
      }

      return null;
    }

    EncryptionAlgorithm of = key.getAlgorithm();
    if (opened.length != of.keyLength()) {
      throw new IcebergCryptoException(
          String.format(
              "A key wrapped by key '%s' has %d bytes, but its ORC file says %s",
              key.getKeyName(), opened.length, of),
          "The file's footer was damaged or forged, or another program wrote it.");
    }

    return new SecretKeySpec(opened, of.getAlgorithm());
  }

  /** ORC has no name for it. */
  @Override
  public KeyProviderKind getKind() {
    return KeyProviderKind.UNKNOWN;
  }
}
