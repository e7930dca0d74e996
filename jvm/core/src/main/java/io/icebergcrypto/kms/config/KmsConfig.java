package io.icebergcrypto.kms.config;

import java.io.Serializable;
import java.util.List;

/**
 * What a catalog's properties say of a KMS: where it is, and where the login's secret is. It
 * travels to executors, so it holds references to secrets and no secret. {@code toString} is how
 * errors name the KMS.
 */
public interface KmsConfig extends Serializable {
  /** Prepares the way to the master keys for this JVM. */
  MasterKeys open();

  /** Whether only those who may use the master key can wrap with it. */
  default boolean authenticatesWrapping() {
    return true;
  }

  /** Whether wrapped keys are bound to the UUID of their table. */
  default boolean bindsTable() {
    return false;
  }

  /**
   * Whether each request has the time limit of a call by itself, so that an attempt may make
   * several: a login, looks at the KMS before its first use, the call.
   */
  default boolean limitsRequests() {
    return false;
  }

  /**
   * Whether clients with an equal configuration may share what is open. Not where the login is what
   * a cloud's library finds, in files, variables and services that no configuration names: a new
   * session is to see what is there now.
   */
  default boolean mayBeShared() {
    return false;
  }

  /**
   * Hashes of the secrets and files that are read when it is opened or logs in, as they are now.
   * Those with other ones share nothing.
   */
  default List<String> nowThere() {
    return List.of();
  }

  /** Whether what is open may be closed while it is idle, and opened again for the next call. */
  default boolean mayCloseWhenIdle() {
    return true;
  }
}
