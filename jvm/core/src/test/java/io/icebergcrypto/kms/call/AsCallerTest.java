package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.jupiter.api.Test;

/** Other threads work as the user who asked, no matter who first used the pool. */
class AsCallerTest {
  /** Which user does the work, with which class loader. */
  private static String who(ClassLoader loader) {
    try {
      boolean same = Thread.currentThread().getContextClassLoader() == loader;
      return UserGroupInformation.getCurrentUser().getUserName() + (same ? "" : "'s jars missing");
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static List<String> seenBy(String user) throws Exception {
    PrivilegedExceptionAction<List<String>> action =
        () -> {
          Thread thread = Thread.currentThread();
          ClassLoader before = thread.getContextClassLoader();
          List<String> seen = new ArrayList<>();
          try (URLClassLoader ofSession = new URLClassLoader(new URL[0], before)) {
            thread.setContextClassLoader(ofSession);
            CompletableFuture<String> ahead = new CompletableFuture<>();
            AsCaller.ahead(() -> ahead.complete(who(ofSession)));
            seen.add(ahead.get(20, TimeUnit.SECONDS));
            ExecutorService workers = AsCaller.workers();
            for (int i = 0; i < 4; i++) {
              seen.add(workers.submit(() -> who(ofSession)).get(20, TimeUnit.SECONDS));
            }
          } finally {
            thread.setContextClassLoader(before);
          }

          return seen;
        };
    return UserGroupInformation.createRemoteUser(user).doAs(action);
  }

  @Test
  void workIsDoneAsTheUserWhoAsksForIt() throws Exception {
    for (String user : List.of("alice", "bob", "alice")) {
      assertThat(seenBy(user)).hasSize(5).containsOnly(user);
    }
  }
}
