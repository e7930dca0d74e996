package io.icebergcrypto.benchmarks;

import java.security.SecureRandom;
import org.apache.parquet.crypto.keytools.LocalWrapKmsClient;

/** Gives parquet-java's own crypto factory its one master key, which lives as long as this JVM. */
public final class ParquetKms extends LocalWrapKmsClient {
  private static final byte[] MASTER_KEY = new byte[16];

  static {
    new SecureRandom().nextBytes(MASTER_KEY);
  }

  /** Made by parquet-java. */
  public ParquetKms() {}

  @Override
  protected byte[] getMasterKeyFromServer(String masterKeyIdentifier) {
    return MASTER_KEY.clone();
  }

  @Override
  protected void initializeInternal() {
    // nothing to set
  }
}
