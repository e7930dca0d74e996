package io.icebergcrypto.kms.azure;

import io.icebergcrypto.format.Sha256;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Searches for a key's version that an unavailable vault, or the end of a call's time, has cut
 * short: the next attempt continues there. Otherwise a search that takes longer than one call may
 * would start over each time and never reach the older versions.
 */
final class AzureSearches {
  /** How many are kept; the one that was cut short first is forgotten first. */
  static final int MOST = 16;

  /** For how long; versions that are made in that time may be missed. */
  static final Duration KEPT = Duration.ofMinutes(10);

  /**
   * One wrapped key's. In one thread's hands at a time.
   *
   * @param wrong the versions that certainly did not wrap it
   * @param listing the key's versions, as far as they have been listed
   * @param begun when, by System.nanoTime()
   */
  record Search(Set<String> wrong, AzureVault.Listing listing, long begun) {}

  private final Map<String, Search> cutShort = new LinkedHashMap<>();

  /** The search that was cut short, which is the caller's now, or a new one. */
  synchronized Search resume(AzureKeyId key, byte[] wrapped) {
    Search found = cutShort.remove(id(key, wrapped));
    return found == null || System.nanoTime() - found.begun > KEPT.toNanos()
        ? new Search(new HashSet<>(), new AzureVault.Listing(), System.nanoTime())
        : found;
  }

  /** Keeps a search for the next attempt. */
  synchronized void keep(AzureKeyId key, byte[] wrapped, Search search) {
    cutShort.put(id(key, wrapped), search);
    if (cutShort.size() > MOST) {
      cutShort.remove(cutShort.keySet().iterator().next());
    }
  }

  private static String id(AzureKeyId key, byte[] wrapped) {
    return key.name() + "/" + Sha256.hex(wrapped);
  }
}
