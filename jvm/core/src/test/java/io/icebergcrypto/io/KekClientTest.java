package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.testing.XorKms;
import java.nio.ByteBuffer;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;

class KekClientTest {
  @Test
  void olderMetadataNamesNoOtherMasterKey() {
    XorKms kms = new XorKms();
    KekClient.Allowed client =
        SerializationUtil.deserializeFromBytes(
            SerializationUtil.serializeToBytes(
                new KekClient.Allowed(AllowedKeyIds.parse("k1, team-*"), kms)));
    ByteBuffer wrapped = client.wrapKey(ByteBuffer.wrap(new byte[16]), "k1");
    assertThat(client.unwrapKey(wrapped, "k1")).isEqualTo(ByteBuffer.wrap(new byte[16]));
    assertThatThrownBy(() -> client.unwrapKey(wrapped, "theirs"))
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContainingAll("older metadata file", "'theirs'", "k1, team-*");
  }
}
