package io.icebergcrypto.benchmarks;

import java.io.IOException;
import java.security.SecureRandom;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.EncryptionAlgorithm;
import org.apache.orc.InMemoryKeystore;
import org.apache.orc.impl.KeyProvider;

/**
 * Gives ORC its one master key, which lives as long as this JVM: ORC takes no other of Hadoop's key
 * providers than a KMS.
 */
public final class OrcKeys implements KeyProvider.Factory {
  private static final byte[] MASTER_KEY = new byte[16];

  static {
    new SecureRandom().nextBytes(MASTER_KEY);
  }

  /** Made by ORC, which finds it as a service. */
  public OrcKeys() {}

  @Override
  public KeyProvider create(String kind, Configuration conf, Random random) throws IOException {
    return kind.equals("benchmarks")
        ? new InMemoryKeystore(random).addKey("k1", EncryptionAlgorithm.AES_CTR_128, MASTER_KEY)
        : null;
  }
}
