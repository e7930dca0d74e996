package io.icebergcrypto.kms.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HttpsAddressTest {
  @ParameterizedTest
  @CsvSource({
    "https://kms.example.com,true",
    "HTTPS://kms.example.com,true",
    "http://localhost:8200,true",
    "http://127.0.0.1,true",
    "http://127.1.2.3:80,true",
    "http://[::1]:8200,true",
    "http://kms.example.com,false",
    "http://127.0.0.1.example.com,false",
    "http://localhost.example.com,false",
    "http://10.0.0.1,false",
    "http://[::2],false",
  })
  void onlyHttpsLeavesThisMachine(String address, boolean isPrivate) {
    assertThat(HttpsAddress.problem(address)).isNull();
    assertThat(HttpsAddress.isPrivate(URI.create(address))).isEqualTo(isPrivate);
  }

  @ParameterizedTest
  @CsvSource({
    "vault:8200,does not start with https://",
    "ftp://vault,does not start with https://",
    "https://,is not a URL",
    "https:///v1,names no host",
    "https://me:secret@vault,'has more than a host, a port and a path'",
    "https://vault/?x=y,'has more than a host, a port and a path'",
    "https://vault/#y,'has more than a host, a port and a path'",
  })
  void whatIsWrongWithAnAddress(String address, String problem) {
    assertThat(HttpsAddress.problem(address)).isEqualTo(problem);
  }
}
