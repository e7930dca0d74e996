package io.icebergcrypto.kms.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

class HeldTokenTest {
  private final ReentrantLock login = new ReentrantLock();
  private final HeldToken<String> token = new HeldToken<>("login", Duration.ofMinutes(5));

  private String duringAnothersLogin() {
    login.lock();
    try {
      return CompletableFuture.supplyAsync(() -> token.during(login)).join();
    } finally {
      login.unlock();
    }
  }

  @Test
  void aTokenThatIsGoodIsUsedDuringAnothersLogin() {
    assertThat(duringAnothersLogin()).as("none is held").isNull();
    token.hold("good", Instant.now().plusSeconds(120));
    assertThat(duringAnothersLogin()).isEqualTo("good");
    token.expectAnother();
    assertThat(duringAnothersLogin()).as("the credentials were replaced").isNull();
    token.hold("ends", Instant.now().plusSeconds(10));
    assertThat(duringAnothersLogin()).isNull();
  }

  @Test
  void whoLogsInUsesNoOldToken() {
    token.hold("old", Instant.now().plusSeconds(120));
    assertThat(token.during(login)).as("nobody does").isNull();
    login.lock();
    assertThat(token.during(login)).as("this thread does").isNull();
  }
}
