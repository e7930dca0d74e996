package io.icebergcrypto.audit;

import java.nio.ByteBuffer;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;

/**
 * A key entry of the metadata as Iceberg decrypts it: that of a manifest list, or of a statistics
 * file, whose entry is alike.
 */
record KeyOfList(String location, String encryptionKeyID) implements ManifestListFile {
  @Override
  public ByteBuffer decryptKeyMetadata(EncryptionManager em) {
    return EncryptionUtil.decryptManifestListKeyMetadata(this, em);
  }
}
