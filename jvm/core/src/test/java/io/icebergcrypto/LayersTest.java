package io.icebergcrypto;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.belongToAnyOf;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.call.AsCaller;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.common.DynMethods;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.util.ThreadPools;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The house of docs/architecture.md, section "Folders": who may use whom. */
class LayersTest {
  private static final String OURS = "io.icebergcrypto.";

  /** From the bottom up: a layer uses those before it in the list, and none after it. */
  private static final List<String> LAYERS =
      List.of(
          "format",
          "kms",
          "config",
          "metadata",
          "io",
          "integrity",
          "commit",
          "cleanup",
          "catalog",
          "values",
          "audit",
          "lifecycle",
          "parquet",
          "orc",
          "spark",
          "python");

  /** The layers within kms, in the same order; a folder that is not here is that of one KMS. */
  private static final List<String> BELOW_KMS = List.of("config", "call", "blob", "http");

  private static final int FILES_IN_A_ROOM = 14;

  private static Path root;
  private static JavaClasses core;
  private static JavaClasses all;

  @BeforeAll
  static void readClasses() {
    // what others' classes look like does not matter
    ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false);
    root = Path.of(System.getProperty("iceberg.crypto.root"), "jvm");
    Path coreClasses = root.resolve("build/iceberg-crypto-core/classes/java/main");
    Path sparkClasses = root.resolve("build/iceberg-crypto-spark-4.1_2.13/classes/java/main");
    core = new ClassFileImporter().importPath(coreClasses);
    all = new ClassFileImporter().importPaths(coreClasses, sparkClasses);
    assertThat(core.contain(OURS + "catalog.EncryptedCatalog")).isTrue();
    assertThat(all.contain(OURS + "python.PythonApi")).isTrue();
  }

  @Test
  void everyClassIsInALayer() {
    String[] layers =
        Stream.concat(Stream.of("io.icebergcrypto"), LAYERS.stream().map(LayersTest::layer))
            .toArray(String[]::new);
    classes()
        .should()
        .resideInAnyPackage(layers)
        .because("nothing of ours is in a package of others, and a new one has its place")
        .check(all);
  }

  @Test
  void noArrowPointsUp() {
    for (int i = 0; i < LAYERS.size() - 1; i++) {
      String[] above = layers(LAYERS.subList(i + 1, LAYERS.size()), "");
      noClasses()
          .that()
          .resideInAPackage(layer(LAYERS.get(i)))
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(above)
          .check(all);
    }
  }

  @Test
  void errorsUseNothingOfOurs() {
    noClasses()
        .that()
        .resideInAPackage("io.icebergcrypto")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(layers(LAYERS, ""))
        .check(all);
  }

  @Test
  void noArrowPointsUpWithinKms() {
    for (int i = 0; i < BELOW_KMS.size(); i++) {
      String[] upTo = layers(BELOW_KMS.subList(0, i + 1), "kms.");
      noClasses()
          .that()
          .resideInAPackage(layer("kms." + BELOW_KMS.get(i)))
          .should()
          .dependOnClassesThat(resideInAPackage(layer("kms")).and(not(resideInAnyPackage(upTo))))
          .check(all);
    }
  }

  @Test
  void onlyKmsUsesTheFolderOfOneKms() {
    for (String folder : foldersOfOneKms()) {
      noClasses()
          .that(not(resideInAnyPackage(OURS + "kms", layer("kms." + folder))))
          .should()
          .dependOnClassesThat()
          .resideInAPackage(layer("kms." + folder))
          .check(all);
    }
  }

  private static List<String> foldersOfOneKms() {
    List<String> folders =
        core.stream()
            .map(JavaClass::getPackageName)
            .filter(name -> name.startsWith(OURS + "kms."))
            .map(name -> name.substring((OURS + "kms.").length()).replaceFirst("\\..*", ""))
            .filter(name -> !BELOW_KMS.contains(name))
            .distinct()
            .toList();
    assertThat(folders).contains("vault", "aws");
    return folders;
  }

  @Test
  void foldersAreFreeOfCycles() {
    slices().matching(OURS + "(**)").should().beFreeOfCycles().check(all);
  }

  @Test
  void coreKnowsNoSpark() {
    noClasses()
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("org.apache.spark..", "scala..", "org.apache.iceberg.spark..")
        .check(core);
  }

  @Test
  void nobodyReadsOrCallsByReflection() {
    noClasses()
        .that()
        .doNotHaveFullyQualifiedName(Json.class.getName()) // reads records, which are our own
        .should()
        .dependOnClassesThat(
            belongToAnyOf(Field.class, Method.class, DynFields.class, DynMethods.class))
        .check(all);
  }

  /** It believes what its KMS returns, and keeps it: this has to be one that is checked. */
  @Test
  void icebergsManagerIsMadeInOnePlace() {
    noClasses()
        .that()
        .areNotAssignableTo(StandardEncryptionManager.class)
        .and()
        .doNotHaveSimpleName("UnwrappedKek") // which checks
        .and()
        .doNotHaveSimpleName("FileKey") // which has no KMS
        .should()
        .callConstructor(
            StandardEncryptionManager.class,
            List.class,
            String.class,
            int.class,
            KeyManagementClient.class)
        .check(all);
  }

  /** A pool's thread is any user's. */
  @Test
  void poolsOfOthersWorkAsTheCaller() {
    noClasses()
        .that()
        .doNotHaveFullyQualifiedName(AsCaller.class.getName())
        .should()
        .dependOnClassesThat(belongToAnyOf(ThreadPools.class, ForkJoinPool.class))
        .because("AsCaller.workers() has them run as the user who asks")
        .check(all);
  }

  @Test
  void roomsAreSmall() throws IOException {
    Map<String, Long> rooms = new TreeMap<>();
    try (Stream<Path> files = Files.walk(root)) {
      files
          .map(file -> root.relativize(file).toString())
          .filter(file -> file.contains("/src/main/java/") && file.endsWith(".java"))
          .filter(file -> !file.endsWith("package-info.java"))
          .forEach(file -> rooms.merge(file.replaceFirst("/[^/]*$", ""), 1L, Long::sum));
    }

    assertThat(rooms).containsKey("core/src/main/java/io/icebergcrypto/catalog");
    Map<String, Long> crowded =
        rooms.entrySet().stream()
            .filter(room -> room.getValue() > FILES_IN_A_ROOM)
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    assertThat(crowded).isEmpty();
  }

  private static String layer(String name) {
    return OURS + name + "..";
  }

  private static String[] layers(List<String> names, String prefix) {
    return names.stream().map(name -> layer(prefix + name)).toArray(String[]::new);
  }

  private static DescribedPredicate<JavaClass> not(DescribedPredicate<JavaClass> predicate) {
    return DescribedPredicate.not(predicate);
  }
}
