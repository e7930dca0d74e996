package io.icebergcrypto.testing;

import java.util.Map;
import org.apache.iceberg.LockManager;

/** Hadoop catalogs of one JVM wait for each other with it as little as those of several do. */
public final class NoLock implements LockManager {
  @Override
  public boolean acquire(String entityId, String ownerId) {
    return true;
  }

  @Override
  public boolean release(String entityId, String ownerId) {
    return true;
  }

  @Override
  public void close() {
    // it holds nothing
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }
}
