package io.icebergcrypto.kms;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.TableBinding;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.iceberg.encryption.KeyManagementClient;

/** A double of a KMS that binds each wrapped key to the table's UUID, which stands before it. */
public final class BindingKms implements KeyManagementClient, AuthenticatedWrapping, TableBinding {
  private static final long serialVersionUID = 1L;

  /** What was asked of all of these, such as "wrap none". */
  public static final List<String> CALLS = new CopyOnWriteArrayList<>();

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    byte[] uuid = uuid("wrap");
    return ByteBuffer.allocate(uuid.length + key.remaining()).put(uuid).put(key.duplicate()).flip();
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    byte[] uuid = uuid("unwrap");
    ByteBuffer start = wrappedKey.slice(0, Math.min(uuid.length, wrappedKey.remaining()));
    if (!start.equals(ByteBuffer.wrap(uuid))) {
      throw new BadWrappedKeyException("another table's key", "");
    }

    byte[] wrapped = KeyCache.copyOf(wrappedKey);
    return ByteBuffer.wrap(wrapped, uuid.length, wrapped.length - uuid.length).slice();
  }

  private static byte[] uuid(String call) {
    String uuid = CallContext.requireTableUuid("the test");
    CALLS.add(call + " " + uuid);
    return uuid.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  @Override
  public boolean bindsTable() {
    return true;
  }
}
