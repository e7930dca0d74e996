package io.icebergcrypto.spark;

import static scala.util.Properties.versionNumberString;

import io.icebergcrypto.InvalidConfigurationException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;

/**
 * A jar of this project, as it says of itself: each is for one minor version of Spark and of Scala.
 * On another one, or beside another jar of this project, classes would fail to link in the middle
 * of the work.
 *
 * @param name the artifact's name, such as iceberg-crypto-spark-4.1_2.13
 * @param version this project's version
 * @param spark such as 4.1
 * @param scala such as 2.13
 * @param place where it was found
 */
public record Artifact(String name, String version, String spark, String scala, String place) {
  private static final String RESOURCE = "io/icebergcrypto/spark/artifact.properties";

  /**
   * Checks that exactly one jar of this project is on the class path, and that it is for this
   * Spark.
   *
   * @throws InvalidConfigurationException it is not, or there are two
   */
  public static void check() {
    check(onClassPath(), org.apache.spark.package$.MODULE$.SPARK_VERSION(), versionNumberString());
  }

  static void check(List<Artifact> found, String sparkVersion, String scalaVersion) {
    String spark = minor(sparkVersion);
    String scala = minor(scalaVersion);
    if (found.stream().map(Artifact::coordinate).distinct().count() > 1) {
      throw new InvalidConfigurationException(
          "There are "
              + found.size()
              + " builds of iceberg-crypto on the class path: "
              + found.stream()
                  .map(one -> one.coordinate() + " in " + one.place)
                  .collect(Collectors.joining(", ")),
          String.format(
              "Leave one, for Spark %s with Scala %s, in spark.jars, spark.jars.packages and"
                  + " Spark's own folder jars together.",
              spark, scala));
    }

    for (Artifact one : found) {
      if (!one.spark.equals(spark) || !one.scala.equals(scala)) {
        throw new InvalidConfigurationException(
            String.format(
                "%s is for Spark %s with Scala %s, and this is Spark %s with Scala %s",
                one.name, one.spark, one.scala, sparkVersion, scalaVersion),
            String.format(
                "Put iceberg-crypto-spark-%s_%s in its place, with iceberg-spark-runtime-%s_%s, if"
                    + " docs/deploying.md lists it; or use Spark %s.",
                spark, scala, spark, scala, one.spark));
      }
    }
  }

  private String coordinate() {
    return name + ":" + version;
  }

  private static String minor(String version) {
    String[] parts = version.split("\\.", 3);
    return parts.length < 2 ? version : parts[0] + "." + parts[1];
  }

  private static List<Artifact> onClassPath() {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    List<Artifact> found = new ArrayList<>();
    try {
      for (URL url :
          Collections.list(
              (loader == null ? Artifact.class.getClassLoader() : loader).getResources(RESOURCE))) {
        found.add(read(url));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + RESOURCE, e);
    }

    return found;
  }

  private static Artifact read(URL url) throws IOException {
    Properties told = new Properties();
    try (InputStream in = url.openStream()) {
      told.load(in);
    }

    return new Artifact(
        told.getProperty("artifact"),
        told.getProperty("version"),
        told.getProperty("spark"),
        told.getProperty("scala"),
        url.toString().replaceFirst("^jar:", "").replaceFirst("!.*", ""));
  }
}
