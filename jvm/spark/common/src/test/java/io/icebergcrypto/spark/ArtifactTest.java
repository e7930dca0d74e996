package io.icebergcrypto.spark;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import org.junit.jupiter.api.Test;

class ArtifactTest {
  private static final Artifact FOR_41 =
      new Artifact("iceberg-crypto-spark-4.1_2.13", "0.1.0", "4.1", "2.13", "file:/a/41.jar");
  private static final Artifact FOR_35 =
      new Artifact("iceberg-crypto-spark-3.5_2.12", "0.1.0", "3.5", "2.12", "file:/b/35.jar");

  @Test
  void takesTheOneThatIsHere() {
    assertThatCode(Artifact::check).doesNotThrowAnyException();
  }

  @Test
  void takesEachPatchOfItsSpark() {
    assertThatCode(() -> Artifact.check(List.of(FOR_41), "4.1.0-preview1", "2.13.9"))
        .doesNotThrowAnyException();
  }

  @Test
  void takesTheSameOneFromTwoPlaces() {
    Artifact again = new Artifact(FOR_41.name(), "0.1.0", "4.1", "2.13", "file:/spark/jars/41.jar");
    assertThatCode(() -> Artifact.check(List.of(FOR_41, again), "4.1.4", "2.13.17"))
        .doesNotThrowAnyException();
  }

  @Test
  void refusesAnotherSpark() {
    assertRefused(
        List.of(FOR_41),
        "4.0.5",
        "2.13.16",
        "iceberg-crypto-spark-4.1_2.13 is for Spark 4.1 with Scala 2.13, and this is Spark 4.0.5"
            + " with Scala 2.13.16",
        "iceberg-crypto-spark-4.0_2.13");
  }

  @Test
  void refusesAnotherScala() {
    assertRefused(
        List.of(FOR_35),
        "3.5.9",
        "2.13.8",
        "is for Spark 3.5 with Scala 2.12, and this is Spark 3.5.9 with Scala 2.13.8",
        "iceberg-crypto-spark-3.5_2.13");
  }

  @Test
  void refusesTwoAndSaysWhereTheyAre() {
    assertRefused(
        List.of(FOR_41, FOR_35),
        "3.5.9",
        "2.12.18",
        "There are 2 builds of iceberg-crypto on the class path:"
            + " iceberg-crypto-spark-4.1_2.13:0.1.0 in file:/a/41.jar,"
            + " iceberg-crypto-spark-3.5_2.12:0.1.0 in file:/b/35.jar",
        "Leave one, for Spark 3.5 with Scala 2.12");
  }

  @Test
  void refusesTwoVersionsOfTheRightOne() {
    Artifact older = new Artifact(FOR_41.name(), "0.0.9", "4.1", "2.13", "file:/old.jar");
    assertRefused(
        List.of(FOR_41, older), "4.1.4", "2.13.17", "0.0.9 in file:/old.jar", "Leave one");
  }

  private static void assertRefused(
      List<Artifact> found, String spark, String scala, String message, String hint) {
    assertThatThrownBy(() -> Artifact.check(found, spark, scala))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message)
        .extracting(e -> ((IcebergCryptoException) e).hint())
        .asString()
        .contains(hint);
  }
}
