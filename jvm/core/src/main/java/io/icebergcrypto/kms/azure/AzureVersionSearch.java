package io.icebergcrypto.kms.azure;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotSupportedException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Finds the version of a key that unwraps a blob. What Azure's wrapkey gives does not say which
 * version wrapped it, and Iceberg's own client does not keep it: it asks the current version, and
 * after a rotation the table is unreadable.
 *
 * <p>The order: versions that worked in this JVM; the current one; then all enabled ones, the
 * newest first. RSA-OAEP and AES key wrap both detect a wrong key, so a version that unwraps is the
 * right one. What a search has found out before the vault became unavailable, or a call's time was
 * over, the next one for the same wrapped key need not ask again ({@link AzureSearches}).
 */
final class AzureVersionSearch {
  private final AzureVault vault;
  private final AzureConfig config;
  private final byte[] wrapped;
  private final AzureKeyId key;
  private final Set<String> tried = new HashSet<>();
  private AzureSearches.Search search;

  /** Why those that were tried did not unwrap, in that order. */
  private final List<IcebergCryptoException> refusals = new ArrayList<>();

  AzureVersionSearch(AzureVault vault, AzureConfig config, byte[] wrapped, AzureKeyId key) {
    this.vault = vault;
    this.config = config;
    this.wrapped = wrapped;
    this.key = key;
  }

  /**
   * Tries the versions.
   *
   * @return the unwrapped key
   * @throws BadWrappedKeyException when no version unwraps it
   * @throws InvalidConfigurationException when none of those that may be tried does
   * @throws KeyDisabledException when no enabled one does, and others are disabled
   * @throws AccessDeniedException when the current version does not, and others cannot be listed
   * @throws KmsUnavailableException when the vault, or this call's time, came to an end before
   */
  byte[] run() {
    search = vault.searches().resume(key, wrapped);
    tried.addAll(search.wrong());
    try {
      return find();
    } catch (IcebergCryptoException e) {
      if (e instanceof KmsUnavailableException || Thread.currentThread().isInterrupted()) {
        vault.searches().keep(key, wrapped, search);
      }

      throw e;
    }
  }

  private byte[] find() {
    for (String version : vault.worked(key.name())) {
      byte[] found = tried.contains(version) ? null : attempt(version);
      if (found != null) {
        return found;
      }
    }

    byte[] found = attempt("");
    return found != null ? found : amongAll();
  }

  private byte[] amongAll() {
    List<AzureVault.Version> versions = versions();
    versions.sort(Comparator.comparingLong(AzureVault.Version::created).reversed());
    List<String> disabled = new ArrayList<>();
    for (AzureVault.Version version : versions) {
      if (!version.enabled()) {
        disabled.add(version.id());
      } else if (tried.size() >= config.versionsToTry()) {
        throw tooMany(versions.size());
      } else if (!tried.contains(version.id())) {
        byte[] found = attempt(version.id());
        if (found != null) {
          return found;
        }
      }
    }

    throw notFound(versions.size(), disabled);
  }

  /** The key; null when this version does not unwrap it. Whatever concerns no version is thrown. */
  private byte[] attempt(String version) {
    tried.add(version);
    try {
      AzureVault.Result result = vault.unwrap(wrapped, key.at(version));
      vault.itWorked(key.name(), result.version());
      return result.bytes();
    } catch (BadWrappedKeyException e) {
      if (!version.isEmpty()) { // the current version is another one after a rotation
        search.wrong().add(version);
      }

      refusals.add(e);
    } catch (KeyDisabledException | NotSupportedException e) {
      refusals.add(e);
    } catch (KeyNotFoundException e) {
      if (version.isEmpty()) {
        throw e;
      }

      refusals.add(e.ofKeyIf(false)); // remembered of a key that was deleted and made again
    }

    return null;
  }

  private List<AzureVault.Version> versions() {
    try {
      return vault.versions(key, search.listing());
    } catch (AccessDeniedException e) {
      for (IcebergCryptoException refusal : refusals) {
        if (!(refusal instanceof BadWrappedKeyException)) {
          throw refusal;
        }
      }

      throw new AccessDeniedException(
              String.format(
                  "%s: the current version of key '%s' does not unwrap this key, and this login may"
                      + " not list the older versions: %s",
                  config, key.given(), e.problem()),
              "Grant `list` on the key ('Key Vault Crypto Service Encryption User' has it), so that"
                  + " what was written before a rotation can be read. If the key was never rotated,"
                  + " the wrapped key was changed or another key wrapped it.",
              e)
          .ofKeyIf(false); // it may be used
    }
  }

  private IcebergCryptoException notFound(int versions, List<String> disabled) {
    if (!disabled.isEmpty()) {
      return new KeyDisabledException(
          String.format(
              "%s: no enabled version of key '%s' unwraps this key, and %s disabled: %s",
              config,
              key.given(),
              disabled.size() == 1 ? "this one is" : "these are",
              String.join(", ", disabled)),
          "Enable the version that wrapped it: `az keyvault key set-attributes --enabled true"
              + " --version ...`. If none did, the wrapped key was changed or another key wrapped"
              + " it.",
          refusals.get(0));
    }

    for (IcebergCryptoException refusal : refusals) {
      if (refusal instanceof NotSupportedException) {
        return refusal;
      }
    }

    return new BadWrappedKeyException(
        String.format(
            "%s: none of the %d versions of key '%s' unwraps this key of %d bytes",
            config, versions, key.given(), wrapped.length),
        "The wrapped key was changed, or another key, algorithm or KMS wrapped it.",
        refusals.get(0));
  }

  private InvalidConfigurationException tooMany(int versions) {
    return new InvalidConfigurationException(
        String.format(
            "%s: of the %d versions of key '%s', %d were tried, the newest first, and none unwraps"
                + " this key",
            config, versions, key.given(), config.versionsToTry()),
        "Raise " + AzureConfig.VERSIONS_TO_TRY + " to try older ones.");
  }
}
