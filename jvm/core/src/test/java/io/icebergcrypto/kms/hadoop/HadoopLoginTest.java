package io.icebergcrypto.kms.hadoop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.LoginFailedException;
import java.security.PrivilegedExceptionAction;
import java.util.Map;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.junit.jupiter.api.Test;

class HadoopLoginTest {
  private static final HadoopConfig CONFIG =
      HadoopConfig.of(Map.of(HadoopConfig.URI_PROPERTY, "kms://http@127.0.0.1:9600/kms"));

  /** Who may act for a user may often use more keys than that user. */
  @Test
  void aProxyUserDoesNotGetTheLoginOfTheProcess() throws Exception {
    UserGroupInformation bob =
        UserGroupInformation.createProxyUser("bob", UserGroupInformation.getLoginUser());
    assertThatThrownBy(() -> login(bob))
        .isInstanceOf(LoginFailedException.class)
        .hasMessageContainingAll("'k'", "proxy user bob has no delegation token of this KMS")
        .hasMessageContaining(HadoopConfig.USER);
    bob.addToken(
        new Token<TokenIdentifier>(
            new byte[] {1}, new byte[] {2}, new Text("kms-dt"), new Text(CONFIG.uri())));
    assertThat(login(bob).headers()).containsOnlyKeys("X-Hadoop-Delegation-Token");
  }

  /** As Spark's executors are, whose processes have the login. */
  @Test
  void anotherUserDoes() throws Exception {
    String process = UserGroupInformation.getLoginUser().getShortUserName();
    assertThat(login(UserGroupInformation.createRemoteUser("bob")).query())
        .isEqualTo("&user.name=" + process);
  }

  private static HadoopLogin login(UserGroupInformation user) throws Exception {
    PrivilegedExceptionAction<HadoopLogin> action =
        () -> HadoopLogin.of(CONFIG, CONFIG.servers()[0], "k");
    return user.doAs(action);
  }
}
