package io.icebergcrypto.kms.vault;

import com.google.gson.JsonObject;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A login at Vault that makes tokens. References only, so that it may travel.
 *
 * @param method what Vault asks for
 * @param mount the path of the login method below {@code auth/}
 * @param role which role to log in as: a role id with AppRole; null with a certificate, when Vault
 *     is to find the role by it
 * @param secret where the secret id or the JWT is; null with a certificate
 * @param certificate the client's; null with the others
 */
record VaultAuth(
    Method method, String mount, String role, SecretSource secret, ClientCertificate certificate)
    implements Serializable {
  static final String ROLE_ID = "encryption.kms.vault.role-id";
  static final String SECRET_ID_ENV = "encryption.kms.vault.secret-id-env";
  static final String SECRET_ID_FILE = "encryption.kms.vault.secret-id-file";
  static final String APPROLE_MOUNT = "encryption.kms.vault.approle-mount";
  static final String KUBERNETES_ROLE = "encryption.kms.vault.kubernetes-role";
  static final String KUBERNETES_TOKEN_FILE = "encryption.kms.vault.kubernetes-token-file";
  static final String KUBERNETES_MOUNT = "encryption.kms.vault.kubernetes-mount";
  static final String JWT_ROLE = "encryption.kms.vault.jwt-role";
  static final String JWT_ENV = "encryption.kms.vault.jwt-env";
  static final String JWT_FILE = "encryption.kms.vault.jwt-file";
  static final String JWT_MOUNT = "encryption.kms.vault.jwt-mount";
  static final String CERT_FILE = "encryption.kms.vault.cert-file";
  static final String CERT_KEY_FILE = "encryption.kms.vault.cert-key-file";
  static final String CERT_ROLE = "encryption.kms.vault.cert-role";
  static final String CERT_MOUNT = "encryption.kms.vault.cert-mount";

  /** Where Kubernetes puts the token of a pod's service account. */
  static final String SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";

  /** The login methods, with what to check when Vault refuses one. */
  enum Method {
    APPROLE(
        "AppRole",
        APPROLE_MOUNT,
        "Check the role id, and that the secret id is of this role and neither expired nor used up"
            + " (a new one: vault write -f auth/%s/role/NAME/secret-id)."),
    KUBERNETES(
        "Kubernetes",
        KUBERNETES_MOUNT,
        "Check that the role is there and names the pod's service account and namespace (vault read"
            + " auth/%s/role/NAME), that the token has the role's audience, and that Vault may"
            + " review tokens (its service account needs system:auth-delegator)."),
    JWT(
        "JWT",
        JWT_MOUNT,
        "Check that the role is there (vault read auth/%s/role/NAME), that the JWT has its bound"
            + " audience, subject and claims, that it has not expired, and that Vault trusts its"
            + " issuer."),
    CERTIFICATE(
        "TLS certificate",
        CERT_MOUNT,
        "Check that a role has the certificate or its authority (vault list auth/%s/certs), that"
            + " the certificate has not expired, and that nothing before Vault ends TLS.");

    private final String title;
    private final String mountProperty;
    private final String advice;

    Method(String title, String mountProperty, String advice) {
      this.title = title;
      this.mountProperty = mountProperty;
      this.advice = advice;
    }
  }

  /**
   * Reads the catalog's properties.
   *
   * @return nothing when they name no such login
   * @throws InvalidConfigurationException when they name more than one, or half of one
   */
  static Optional<VaultAuth> read(PropertyReader reader) {
    reader.refuseSecret("encryption.kms.vault.secret-id", SECRET_ID_ENV + " or " + SECRET_ID_FILE);
    reader.refuseSecret("encryption.kms.vault.jwt", JWT_ENV + " or " + JWT_FILE);
    reader.refuseSecret("encryption.kms.vault.cert-key", CERT_KEY_FILE);
    List<VaultAuth> found = new ArrayList<>();
    appRole(reader).ifPresent(found::add);
    kubernetes(reader).ifPresent(found::add);
    jwt(reader).ifPresent(found::add);
    certificate(reader).ifPresent(found::add);
    if (found.size() > 1) {
      throw new InvalidConfigurationException(
          String.format(
              "Vault has two logins: by %s and by %s",
              found.get(0).method.title, found.get(1).method.title),
          String.format(
              "Set one of %s, %s, %s and %s, with what belongs to it.",
              ROLE_ID, KUBERNETES_ROLE, JWT_ROLE, CERT_FILE));
    }

    Optional<VaultAuth> auth = found.stream().findFirst();
    for (Method method : Method.values()) {
      if (reader.optional(method.mountProperty) != null
          && auth.map(VaultAuth::method).filter(method::equals).isEmpty()) {
        throw new InvalidConfigurationException(
            String.format(
                "Property %s is set, but the login is not by %s",
                method.mountProperty, method.title),
            "Remove it, or set what that login needs.");
      }
    }

    return auth;
  }

  /** What is posted to log in. */
  JsonObject body(String shownSecret) {
    JsonObject body = new JsonObject();
    switch (method) {
      case APPROLE -> {
        body.addProperty("role_id", role);
        body.addProperty("secret_id", shownSecret);
      }
      case KUBERNETES, JWT -> {
        body.addProperty("role", role);
        body.addProperty("jwt", shownSecret);
      }
      case CERTIFICATE -> {
        if (role != null) {
          body.addProperty("name", role);
        }
      }
    }

    return body;
  }

  /** What to check when Vault refuses the login, and where to say that it is elsewhere. */
  String advice() {
    return String.format(method.advice, mount)
        + String.format(
            " If %s is not at auth/%s, set %s.", method.title, mount, method.mountProperty);
  }

  /** What errors call this login. */
  @Override
  public String toString() {
    return switch (method) {
      case APPROLE -> "AppRole login with role id " + role + " and " + secret;
      case KUBERNETES, JWT -> method.title + " login with role " + role + " and " + secret;
      case CERTIFICATE ->
          "TLS certificate login with "
              + (role == null ? "" : "role " + role + " and ")
              + certificate;
    };
  }

  private static Optional<VaultAuth> appRole(PropertyReader reader) {
    Optional<SecretSource> secretId = SecretSource.optional(reader, SECRET_ID_ENV, SECRET_ID_FILE);
    if (reader.optional(ROLE_ID) == null && secretId.isEmpty()) {
      return Optional.empty();
    }

    return Optional.of(
        new VaultAuth(
            Method.APPROLE,
            VaultConfig.path(reader, APPROLE_MOUNT, "approle"),
            reader.required(ROLE_ID, "59d6d1ca-47bb-4e7e-a40b-8be3bc5a0ba8"),
            secretId.orElseGet(() -> SecretSource.required(reader, SECRET_ID_ENV, SECRET_ID_FILE)),
            null));
  }

  private static Optional<VaultAuth> kubernetes(PropertyReader reader) {
    if (reader.optional(KUBERNETES_ROLE) == null
        && reader.optional(KUBERNETES_TOKEN_FILE) == null) {
      return Optional.empty();
    }

    return Optional.of(
        new VaultAuth(
            Method.KUBERNETES,
            VaultConfig.path(reader, KUBERNETES_MOUNT, "kubernetes"),
            reader.required(KUBERNETES_ROLE, "spark"),
            SecretSource.file(
                    reader.optional(KUBERNETES_TOKEN_FILE, SERVICE_ACCOUNT_TOKEN),
                    KUBERNETES_TOKEN_FILE)
                .orProjected(),
            null));
  }

  private static Optional<VaultAuth> jwt(PropertyReader reader) {
    Optional<SecretSource> jwt = SecretSource.optional(reader, JWT_ENV, JWT_FILE);
    if (reader.optional(JWT_ROLE) == null && jwt.isEmpty()) {
      return Optional.empty();
    }

    return Optional.of(
        new VaultAuth(
            Method.JWT,
            VaultConfig.path(reader, JWT_MOUNT, "jwt"),
            reader.required(JWT_ROLE, "spark"),
            jwt.orElseGet(() -> SecretSource.required(reader, JWT_ENV, JWT_FILE)).orProjected(),
            null));
  }

  private static Optional<VaultAuth> certificate(PropertyReader reader) {
    if (reader.optional(CERT_FILE) == null
        && reader.optional(CERT_KEY_FILE) == null
        && reader.optional(CERT_ROLE) == null) {
      return Optional.empty();
    }

    return Optional.of(
        new VaultAuth(
            Method.CERTIFICATE,
            VaultConfig.path(reader, CERT_MOUNT, "cert"),
            reader.optional(CERT_ROLE),
            null,
            new ClientCertificate(
                reader.required(CERT_FILE, "/etc/spark/vault-client.pem"),
                SecretSource.file(
                    reader.required(CERT_KEY_FILE, "/etc/spark/vault-client-key.pem"),
                    CERT_KEY_FILE))));
  }
}
