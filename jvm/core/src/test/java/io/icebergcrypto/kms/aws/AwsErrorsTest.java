package io.icebergcrypto.kms.aws;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.kms.call.Causes;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.awscore.exception.AwsServiceException;

class AwsErrorsTest {
  /** As AWS KMS says it today, and as it did before. */
  private static final String[] NOT_HERE = {
    "User: u is not authorized to perform: kms:Decrypt on the resource associated with this"
        + " ciphertext because the resource does not exist in this Region, no resource-based"
        + " policies allow access, or a resource-based policy explicitly denies access",
    "The ciphertext refers to a customer master key that does not exist, does not exist in this"
        + " region, or you are not allowed to access.",
  };

  private static final String REGION = "eu-central-1";
  private static final AwsErrors ERRORS =
      new AwsErrors(AwsConfig.of(Map.of(AwsConfig.REGION, REGION)), REGION);

  @ParameterizedTest
  @CsvSource({
    "User: u is not authorized to perform: kms:Decrypt on resource: k, true",
    "User: u is not authorized to perform: kms:Decrypt on resource: k with an explicit deny in an"
        + " identity-based policy, true",
    "User: u is not authorized to perform: kms:Decrypt on resource: k because no VPC endpoint"
        + " policy allows the kms:Decrypt action, false",
    "User: u is not authorized to perform: kms:Decrypt on resource: k with an explicit deny in a"
        + " VPC endpoint policy, false",
    "no, false",
    "'', false",
  })
  void onlyAMissingPermissionIsOfTheKey(String message, boolean ofKey) {
    IcebergCryptoException error = error("AccessDeniedException", message);
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
  }

  /** Hosts that take the region from their environment may ask several; so may a key be in. */
  @ParameterizedTest
  @CsvSource({
    "eu-central-1, alias/sales, true",
    "eu-central-1, arn:aws:kms:eu-central-1:1:key/k, true",
    "eu-central-1, mrk-k, false",
    "eu-central-1, arn:aws:kms:eu-central-1:1:key/mrk-k, false",
    "'', alias/sales, false",
    "'', k, false",
    "'', arn:aws:kms:eu-central-1:1:key/k, true",
  })
  void onlyTheKeysOwnRegionSaysThatItIsGone(String set, String keyId, boolean ofKey) {
    Map<String, String> properties = set.isEmpty() ? Map.of() : Map.of(AwsConfig.REGION, set);
    AwsErrors errors = new AwsErrors(AwsConfig.of(properties), REGION);
    assertThat(error(errors, "NotFoundException", "no", keyId))
        .isExactlyInstanceOf(KeyNotFoundException.class)
        .satisfies(e -> assertThat(Causes.isOfKey(e)).isEqualTo(ofKey));
    for (String message : NOT_HERE) {
      assertThat(error(errors, "AccessDeniedException", message, keyId))
          .isExactlyInstanceOf(AccessDeniedException.class)
          .satisfies(e -> assertThat(Causes.isOfKey(e)).isEqualTo(ofKey));
    }

    assertThat(error(errors, "KMSInvalidStateException", "It is pending deletion.", keyId))
        .isInstanceOfSatisfying(
            KeyDisabledException.class, e -> assertThat(e.isDestroyed()).isEqualTo(ofKey));
  }

  @Test
  void anotherRegionThanTheKeysOwnSaysNothing() {
    AwsErrors errors = new AwsErrors(AwsConfig.of(Map.of()), "us-east-1");
    String keyId = "arn:aws:kms:eu-central-1:1:key/k";
    assertThat(Causes.isOfKey(error(errors, "AccessDeniedException", NOT_HERE[0], keyId)))
        .isFalse();
  }

  /** AWS KMS says the same when a custom key store is disconnected or does not answer. */
  @ParameterizedTest
  @CsvSource({
    "arn:aws:kms:eu-central-1:1:key/k is pending deletion., true",
    "arn:aws:kms:eu-central-1:1:key/k is pending import., true",
    "AWS KMS cannot communicate with the external key store proxy., false",
    "arn:aws:kms:eu-central-1:1:key/k is unavailable., false",
  })
  void onlyItsStateDisablesAKey(String message, boolean disabled) {
    assertThat(error("KMSInvalidStateException", message))
        .isExactlyInstanceOf(disabled ? KeyDisabledException.class : IcebergCryptoException.class)
        .hasMessageContainingAll("could not unwrap with key 'k'", message, "describe-key");
  }

  @ParameterizedTest
  @CsvSource({
    "DisabledException, k is disabled., false",
    "KMSInvalidStateException, k is pending import., false",
    "KMSInvalidStateException, k is pending deletion., true",
    "KMSInvalidStateException, k is pending replica deletion., false",
    "KMSInvalidStateException, arn:aws:kms:eu-central-1:1:key/mrk-k is pending deletion., false",
  })
  void aKeyThatIsDisabledIsNotDestroyed(String code, String message, boolean destroyed) {
    assertThat(error(code, message))
        .isInstanceOfSatisfying(
            KeyDisabledException.class, e -> assertThat(e.isDestroyed()).isEqualTo(destroyed));
  }

  private static IcebergCryptoException error(String code, String message) {
    return error(ERRORS, code, message, "k");
  }

  private static IcebergCryptoException error(
      AwsErrors errors, String code, String message, String keyId) {
    AwsErrorDetails details =
        AwsErrorDetails.builder().serviceName("Kms").errorCode(code).errorMessage(message).build();
    return errors.typed(
        AwsServiceException.builder().awsErrorDetails(details).statusCode(400).build(),
        "unwrap",
        keyId);
  }
}
