package io.icebergcrypto.orc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which columns have keys, by settings that may be meant for other files. */
class OrcColumnKeysTest {
  private static final String SCHEMA =
      "struct<id:int,ssn:string,address:struct<street:string,city:string>,`a,b`:string,`7`:int>";

  private final Configuration hadoop = new Configuration(false);

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "k1:ssn | ssn",
        "k1:ssn,email;k2:phone | ssn",
        "k1:email;k2:phone,address.street | address",
        "k1:address.zip | address",
        "`arn:k;1`:`a,b`,`x``y`.z | a,b",
        "k1:email | ''",
        "k1:SSN | ''",
        "k1:2 | ssn",
        "k1:5 | address",
        "k1:0 | id ssn address a,b 7",
        "k1:7 | 7",
        "k1:99 | ''",
        "k1:12345678901234567890 | ''",
        "'' | ''",
      })
  void columnsThatAreThere(String encrypt, String expected) {
    hadoop.set("orc.encrypt", encrypt);
    hadoop.set("orc.mask", "redact:phone");
    assertThat(OrcColumnKeys.keyed(hadoop, SCHEMA))
        .containsExactlyInAnyOrderElementsOf(
            expected.isEmpty() ? List.of() : List.of(expected.split(" ")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"ssn", "k1:", "k1:ssn, id", "k1:ssn..id", "k1:`ssn"})
  void whatIsNoListIsRefused(String encrypt) {
    hadoop.set("orc.encrypt", encrypt);
    assertThatThrownBy(() -> OrcColumnKeys.keyed(hadoop, SCHEMA))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("cannot be read");
  }

  /** ORC ignores such names: what they name would be plaintext, in a stream, too. */
  @ParameterizedTest
  @ValueSource(strings = {"Orc.Encrypt", "orc.MASK", "ORC.key.provider", "orc.key.providers"})
  void namesThatDoNothingAreRefused(String name) {
    hadoop.set(name, "k1:ssn");
    assertThatThrownBy(() -> OrcColumnKeys.checkSession(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("ORC has no property " + name);
  }
}
