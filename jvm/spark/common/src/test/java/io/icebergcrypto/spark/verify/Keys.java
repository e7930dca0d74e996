package io.icebergcrypto.spark.verify;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;

/**
 * Key metadata put together byte by byte (Iceberg specification, standard key metadata): version 1,
 * and three Avro fields, of which two may be absent.
 */
record Keys(byte[] key, byte[] prefix, Long fileLength) implements NativeEncryptionKeyMetadata {
  Keys(byte[] key, byte[] prefix) {
    this(key, prefix, null);
  }

  @Override
  public ByteBuffer encryptionKey() {
    return ByteBuffer.wrap(key);
  }

  @Override
  public ByteBuffer aadPrefix() {
    return prefix == null ? null : ByteBuffer.wrap(prefix);
  }

  @Override
  public NativeEncryptionKeyMetadata copyWithLength(long length) {
    return new Keys(key, prefix, length);
  }

  @Override
  public ByteBuffer buffer() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(1);
    number(out, key.length);
    out.writeBytes(key);
    number(out, prefix == null ? 0 : 1);
    if (prefix != null) {
      number(out, prefix.length);
      out.writeBytes(prefix);
    }

    number(out, fileLength == null ? 0 : 1);
    if (fileLength != null) {
      number(out, fileLength);
    }

    return ByteBuffer.wrap(out.toByteArray());
  }

  @Override
  public EncryptionKeyMetadata copy() {
    return this;
  }

  private static void number(ByteArrayOutputStream out, long value) {
    long zigzag = value << 1;
    while (zigzag > 0x7f) {
      out.write((int) (zigzag & 0x7f | 0x80));
      zigzag >>>= 7;
    }

    out.write((int) zigzag);
  }
}
