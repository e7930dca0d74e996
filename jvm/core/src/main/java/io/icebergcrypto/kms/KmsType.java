package io.icebergcrypto.kms;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.aws.AwsConfig;
import io.icebergcrypto.kms.azure.AzureConfig;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.gcp.GcpConfig;
import io.icebergcrypto.kms.hadoop.HadoopConfig;
import io.icebergcrypto.kms.keystore.KeystoreConfig;
import io.icebergcrypto.kms.pkcs11.Pkcs11Config;
import io.icebergcrypto.kms.vault.VaultConfig;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** The values of {@code encryption.kms-type}: this project's clients, and what they need. */
enum KmsType {
  AWS("AwsKmsClient", "org.apache.iceberg:iceberg-aws-bundle:1.12.0"),
  AZURE("AzureKmsClient", "com.azure:azure-identity:1.18.4"),
  GCP("GcpKmsClient", "com.google.auth:google-auth-library-oauth2-http:1.50.0"),
  HADOOP("HadoopKmsClient", "org.apache.hadoop:hadoop-client-runtime:3.4.2"),
  KEYSTORE("KeystoreKmsClient", null),
  PKCS11("Pkcs11KmsClient", null),
  VAULT("VaultKmsClient", null);

  private final String implementation;
  private final String coordinate; // of the Maven package that it needs beside ours; null: none

  KmsType(String implementation, String coordinate) {
    this.implementation = KmsType.class.getPackageName() + "." + implementation;
    this.coordinate = coordinate;
  }

  String implementation() {
    return implementation;
  }

  static Optional<KmsType> of(String name) {
    String upper = name.trim().toUpperCase(Locale.ROOT);
    return Arrays.stream(values()).filter(type -> type.name().equals(upper)).findAny();
  }

  /** The type of a client class; empty when it is not one of this project's. */
  static Optional<KmsType> ofClient(String implementation) {
    return Arrays.stream(values())
        .filter(type -> type.implementation.equals(implementation))
        .findAny();
  }

  /** As {@code encryption.kms-type} has it. */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** What a catalog's properties say of such a KMS. */
  KmsConfig read(Map<String, String> properties) {
    return switch (this) {
      case AWS -> AwsConfig.of(properties);
      case AZURE -> AzureConfig.of(properties);
      case GCP -> GcpConfig.of(properties);
      case HADOOP -> HadoopConfig.of(properties);
      case KEYSTORE -> KeystoreConfig.of(properties);
      case PKCS11 -> Pkcs11Config.of(properties);
      case VAULT -> VaultConfig.of(properties);
    };
  }

  static String names() {
    return Arrays.stream(values()).map(KmsType::word).collect(Collectors.joining(", "));
  }

  /** The error of the class loader or linker among a failure's causes; null if no cause is one. */
  static LinkageError linkageError(Throwable failure) {
    return (LinkageError)
        Causes.of(failure).filter(LinkageError.class::isInstance).findFirst().orElse(null);
  }

  /**
   * The error for a library whose class is not on the class path, or that is there in a version
   * that does not fit: a method that it lacks, say.
   */
  static InvalidConfigurationException missingLibrary(String implementation, LinkageError error) {
    boolean missing = error instanceof NoClassDefFoundError;
    String version = missing ? "" : " and take other versions of it off the class path";
    String problem =
        missing
            ? String.format(
                "KMS client %s needs a library that is not on the class path: %s",
                implementation, error.getMessage())
            : String.format(
                "KMS client %s found a library in an incompatible version: %s",
                implementation, error);
    String hint =
        ofClient(implementation)
            .filter(type -> type.coordinate != null)
            .map(
                type ->
                    String.format(
                        "Add %s to spark.jars.packages, or its jar to spark.jars%s. In Flink, put"
                            + " its jar into lib.",
                        type.coordinate, version))
            .orElse("Add the library's jar to spark.jars or spark.jars.packages" + version + ".");
    // a class that is missing is in the message: as the cause, it would be all that Flink's SQL
    // client shows
    return missing
        ? new InvalidConfigurationException(problem, hint)
        : new InvalidConfigurationException(problem, hint, error);
  }
}
