package io.icebergcrypto.kms.hadoop;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.Causes;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.ietf.jgss.GSSContext;
import org.ietf.jgss.GSSException;
import org.ietf.jgss.GSSManager;
import org.ietf.jgss.GSSName;
import org.ietf.jgss.Oid;

/**
 * The login of the process as Hadoop has it ({@link UserGroupInformation}): a delegation token of
 * the KMS, which YARN gives to executors; else Kerberos, by SPNEGO (RFC 4559); else, where Hadoop's
 * security is off, the user's name. Nothing of it is kept here.
 *
 * @param query what is added to a request's, or empty
 * @param headers of the request
 */
record HadoopLogin(String query, Map<String, String> headers) {
  private static final Text TOKEN_KIND = new Text("kms-dt");
  private static final String SPNEGO = "1.3.6.1.5.5.2"; // RFC 4178, section 3

  /**
   * What a request shows.
   *
   * @throws LoginFailedException when there is no login
   */
  static HadoopLogin of(HadoopConfig config, URI server, String keyId) {
    try {
      UserGroupInformation user = UserGroupInformation.getCurrentUser();
      Token<?> token = token(user, config, server);
      if (token == null && user.getRealUser() != null) {
        throw withoutToken(config, keyId, user);
      }

      if (token == null && !user.hasKerberosCredentials()) {
        user = UserGroupInformation.getLoginUser();
        token = token(user, config, server);
      }

      if (token != null) {
        return new HadoopLogin("", Map.of("X-Hadoop-Delegation-Token", token.encodeToUrlString()));
      }

      if (!UserGroupInformation.isSecurityEnabled()) {
        String name = URLEncoder.encode(user.getShortUserName(), StandardCharsets.UTF_8);
        return new HadoopLogin("&user.name=" + name, Map.of());
      }

      user.checkTGTAndReloginFromKeytab();
      PrivilegedExceptionAction<String> asked = () -> negotiation(server.getHost());
      return new HadoopLogin("", Map.of("Authorization", "Negotiate " + user.doAs(asked)));
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (IOException | RuntimeException e) {
      throw failed(config, keyId, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failed(config, keyId, e);
    }
  }

  /** Names nothing of it: it is a credential. */
  @Override
  public String toString() {
    return "a login to Hadoop KMS";
  }

  /** The user's delegation token for this KMS; null: none. */
  private static Token<?> token(UserGroupInformation user, HadoopConfig config, URI server) {
    List<Token<?>> tokens =
        user.getTokens().stream()
            .<Token<?>>map(token -> token)
            .filter(token -> token.getKind().equals(TOKEN_KIND))
            .toList();
    // Hadoop names the KMS in it by its URI; before 3.x by host and port
    List<Text> names = List.of(new Text(config.uri()), SecurityUtil.buildTokenService(server));
    return tokens.stream()
        .filter(token -> names.contains(token.getService()))
        .findFirst()
        .orElse(null);
  }

  /** The first token of SPNEGO, which is all that Kerberos needs. */
  private static String negotiation(String host) throws GSSException {
    GSSManager manager = GSSManager.getInstance();
    GSSName server = manager.createName("HTTP@" + host, GSSName.NT_HOSTBASED_SERVICE);
    GSSContext context =
        manager.createContext(server, new Oid(SPNEGO), null, GSSContext.DEFAULT_LIFETIME);
    try {
      return Base64.getEncoder().encodeToString(context.initSecContext(new byte[0], 0, 0));
    } finally {
      context.dispose();
    }
  }

  /** The login of the process is another user's, who may use other keys. */
  private static LoginFailedException withoutToken(
      HadoopConfig config, String keyId, UserGroupInformation user) {
    return new LoginFailedException(
        String.format(
            "%s: there is no login for key '%s': proxy user %s has no delegation token of this KMS",
            config, keyId, user.getShortUserName()),
        "Have who starts this process for the user get a token of the KMS, or run it with a login"
            + " of the user's own instead of --proxy-user. For a KMS with simple authentication,"
            + " set "
            + HadoopConfig.USER
            + ".");
  }

  private static IcebergCryptoException failed(HadoopConfig config, String keyId, Exception e) {
    return new LoginFailedException(
        String.format(
            "%s: there is no login for key '%s': %s", config, keyId, Causes.innermostMessage(e)),
        "Log in by Kerberos (kinit, or --principal and --keytab of spark-submit), or set "
            + HadoopConfig.USER
            + " for a KMS with simple authentication.",
        e);
  }
}
