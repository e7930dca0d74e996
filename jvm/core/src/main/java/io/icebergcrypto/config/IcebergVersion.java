package io.icebergcrypto.config;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.IcebergBuild;

/**
 * Checks which Iceberg a program runs on. Versions register the keys of manifest lists by different
 * methods: on another one than it was built for, a commit would go by this project's locks.
 */
public final class IcebergVersion {
  private static final Pattern MAJOR_MINOR = Pattern.compile("(\\d+)\\.(\\d+)\\b.*");

  private IcebergVersion() {}

  /**
   * Checks the Iceberg on the class path.
   *
   * @throws InvalidConfigurationException when this build is not for it
   */
  public static void check() {
    check(IcebergBuild.version());
  }

  /**
   * The refusal of a deletion vector where its key would be lost, or is.
   *
   * @param path the file's
   */
  public static IcebergCryptoException lostKey(String tableName, String path) {
    return new NotSupportedException(
            "this Iceberg ("
                + IcebergBuild.version()
                + ") loses the keys of deletion vectors: "
                + path,
            "In Spark, set write.delete.mode, write.update.mode and write.merge.mode of the table"
                + " to copy-on-write, or write with a Spark that has Iceberg 1.12. In Flink, upsert"
                + " no key twice between two checkpoints. Nothing was committed.")
        .inTable(tableName);
  }

  static void check(String version) {
    Matcher number = MAJOR_MINOR.matcher(version);
    if (!number.matches()) {
      throw refusal("an Iceberg whose version is not known (" + version + ")");
    }

    int[] found = {Integer.parseInt(number.group(1)), Integer.parseInt(number.group(2))};
    if (isBefore(found, IcebergVersions.FROM) || !isBefore(found, IcebergVersions.BELOW)) {
      throw refusal("Iceberg " + version);
    }
  }

  private static boolean isBefore(int[] version, String other) {
    String[] parts = other.split("\\.", -1);
    int major = Integer.compare(version[0], Integer.parseInt(parts[0]));
    return major != 0 ? major < 0 : version[1] < Integer.parseInt(parts[1]);
  }

  private static InvalidConfigurationException refusal(String found) {
    String range = IcebergVersions.FROM + " or later, below " + IcebergVersions.BELOW;
    return new InvalidConfigurationException(
        String.format("This build of iceberg-crypto is for Iceberg %s; this is %s", range, found),
        "Put such an Iceberg on the class path (spark.jars.packages, or the folder jars of Spark or"
            + " Flink) in place of this one, or take the artifact of iceberg-crypto for this"
            + " engine's version: docs/deploying.md lists them.");
  }
}
