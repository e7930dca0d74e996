package io.icebergcrypto.kms.hadoop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class HadoopConfigTest {
  @Test
  void everyServerOfTheUriHasItsPortAndPath() {
    assertThat(of("kms://https@a.example;b.example:9600/kms").servers())
        .containsExactly(
            URI.create("https://a.example:9600/kms"), URI.create("https://b.example:9600/kms"));
    assertThat(of("kms://http@127.0.0.1:9600/kms/").servers())
        .containsExactly(URI.create("http://127.0.0.1:9600/kms"));
    assertThat(of("kms://http@[::1]:9600/gateway/kms").servers())
        .containsExactly(URI.create("http://[::1]:9600/gateway/kms"));
  }

  @Test
  void whatIsNoUriOfAKmsIsRefusedAndNotShown() {
    for (String bad :
        List.of(
            "https://kms.example:9600/kms",
            "kms://ftp@kms.example:9600/kms",
            "kms://https:word-only-for-tests@kms.example:9600/kms",
            "kms://https@kms.example:9600/kms?word-only-for-tests",
            "kms://https@kms.example:9600/../word-only-for-tests ",
            "kms://https@;kms.example:9600/kms",
            "kms://https@a b:9600/kms")) {
      assertThatThrownBy(() -> of(bad))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining(HadoopConfig.URI_PROPERTY)
          .hasMessageNotContaining("word-only");
    }
  }

  @Test
  void httpToAnotherHostIsRefusedUnlessAllowed() {
    String uri = "kms://http@127.0.0.1;kms.example:9600/kms";
    assertThatThrownBy(() -> of(uri))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("would send keys to kms.example in plaintext");
    assertThat(of(uri, HadoopConfig.ALLOW_HTTP, "true").servers()).hasSize(2);
  }

  @Test
  void aUserIsAName() {
    String uri = "kms://https@kms.example:9600/kms";
    assertThat(of(uri, HadoopConfig.USER, "spark").login()).isEqualTo("user 'spark'");
    assertThat(of(uri).login()).isEqualTo("the login of this process");
    for (String bad : List.of("a&b", "a b", " ")) {
      assertThatThrownBy(() -> of(uri, HadoopConfig.USER, bad))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining(HadoopConfig.USER);
    }
  }

  private static HadoopConfig of(String uri, String... more) {
    Map<String, String> properties = new HashMap<>(Map.of(HadoopConfig.URI_PROPERTY, uri));
    if (more.length > 0) {
      properties.put(more[0], more[1]);
    }

    return HadoopConfig.of(properties);
  }
}
