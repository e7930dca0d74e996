package io.icebergcrypto.kms.call;

import java.util.concurrent.ThreadFactory;

/** Makes threads that do not keep the JVM from its end. */
public record DaemonThreads(String name) implements ThreadFactory {
  @Override
  public Thread newThread(Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }
}
