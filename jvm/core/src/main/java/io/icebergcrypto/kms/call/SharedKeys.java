package io.icebergcrypto.kms.call;

import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import java.lang.ref.Cleaner;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Ways to master keys, with their logins, connections and threads, which all clients of this JVM
 * with an equal configuration share. Each session has clients of its own: with a way each, a server
 * of many sessions would have hundreds of threads and logins. Caches of keys are not shared.
 *
 * <p>A configuration names secrets by where they are: equal ones lead to the same way as long as
 * there are the same secrets and certificates, of which hashes are compared. Where a login is that
 * of the thread's user, as Hadoop KMS's is, it is the thread's in each call; still, no user has
 * another's way.
 */
public final class SharedKeys {
  private static final Map<Terms, SharedKeys> OPEN = new HashMap<>(); // guarded by itself
  private static final Cleaner CLEANER =
      Cleaner.create(new DaemonThreads("iceberg-crypto-kms-cleaner"));

  /** What must be equal to share. */
  private record Terms(KmsConfig config, List<String> secrets, Optional<Object> user) {}

  private final Terms terms;
  private final MasterKeys keys;
  private int holders; // guarded by OPEN

  private SharedKeys(Terms terms, MasterKeys keys) {
    this.terms = terms;
    this.keys = keys;
  }

  /** One client's hold on a way. */
  public static final class Hold {
    private final SharedKeys shared;
    private final Cleaner.Cleanable release;

    private Hold(SharedKeys shared, Object holder) {
      this.shared = shared;
      this.release = CLEANER.register(holder, shared::release);
    }

    /** The way. */
    public MasterKeys keys() {
      return shared.keys;
    }

    /** Gives it up; the last one closes the way. */
    public void release() {
      release.clean();
    }
  }

  /**
   * Takes hold of the way that a configuration describes, which is opened if it does not exist.
   *
   * @param holder gives it up when it is garbage, if it did not before
   */
  public static Hold of(KmsConfig config, Object holder) {
    return new Hold(config.mayBeShared() ? shared(config) : alone(config), holder);
  }

  /** Does short work after an object has become garbage, to which the work must not refer. */
  public static void whenGarbage(Object of, Runnable work) {
    CLEANER.register(of, work);
  }

  private static SharedKeys shared(KmsConfig config) {
    Terms terms = new Terms(config, config.nowThere(), AsCaller.user());
    synchronized (OPEN) {
      SharedKeys found = OPEN.computeIfAbsent(terms, one -> new SharedKeys(one, config.open()));
      found.holders++;
      return found;
    }
  }

  private static SharedKeys alone(KmsConfig config) {
    SharedKeys made = new SharedKeys(null, config.open());
    made.holders = 1;
    return made;
  }

  private void release() {
    synchronized (OPEN) {
      holders--;
      if (holders > 0) {
        return;
      }

      if (terms != null) {
        OPEN.remove(terms, this);
      }
    }

    keys.close();
  }
}
