package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SharedKeysTest {
  private static final int TIMES = 100;

  /** A double of a way to master keys. */
  private static final class Way implements MasterKeys {
    private int closed;

    @Override
    public ByteBuffer wrap(byte[] key, String keyId) {
      return ByteBuffer.wrap(key);
    }

    @Override
    public ByteBuffer unwrap(ByteBuffer wrapped, String keyId) {
      return wrapped;
    }

    @Override
    public void close() {
      closed++;
    }
  }

  private record Config(boolean mayBeShared) implements KmsConfig {
    private static final long serialVersionUID = 1L;

    @Override
    public MasterKeys open() {
      return new Way();
    }
  }

  /** A client that is closed while it is idle lives as long as its catalog. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatIsClosedIsNotKept(boolean shared) {
    Object client = new Object();
    List<WeakReference<MasterKeys>> opened = new ArrayList<>();
    for (int i = 0; i < TIMES; i++) {
      opened.add(openedAndReleased(new Config(shared), client));
    }

    for (int i = 0; i < 100 && isAnyThere(opened); i++) {
      System.gc();
      LockSupport.parkNanos(10_000_000L);
    }

    assertThat(opened).noneMatch(way -> way.get() != null);
    Reference.reachabilityFence(client);
  }

  private static boolean isAnyThere(List<WeakReference<MasterKeys>> ways) {
    return ways.stream().anyMatch(way -> way.get() != null);
  }

  private static WeakReference<MasterKeys> openedAndReleased(KmsConfig config, Object client) {
    SharedKeys.Hold hold = SharedKeys.of(config, client);
    Way way = (Way) hold.keys();
    assertThat(way.closed).isZero();
    hold.release();
    hold.release();
    assertThat(way.closed).isOne();
    return new WeakReference<>(way);
  }
}
