package io.icebergcrypto.python;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.DocumentSignature;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.cipher.AesGcm;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.parquet.KeyMaterialRotation;
import io.icebergcrypto.spark.Artifact;
import io.icebergcrypto.spark.inspect.KeyedInspection;
import io.icebergcrypto.spark.operations.Operations;
import io.icebergcrypto.spark.operations.Target;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.FolderVerifier;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * All that the Python package calls through Py4J; nothing else calls it. Arguments and answers are
 * strings; structures are JSON. {@link #run} does operations, which SQL reaches, too; the other
 * methods are for what stays on the driver: this JVM, its files, the list of files of a
 * verification, and signing, which over SQL would let anyone who sends statements sign a report.
 */
public final class PythonApi {
  private static final Set<Thread> UNDER_WAY = new HashSet<>();

  private PythonApi() {}

  /**
   * Checks that this jar is for this Spark.
   *
   * @throws InvalidConfigurationException it is not, or there is another one of this project
   */
  public static void checkArtifact() {
    Artifact.check();
  }

  /** The version of this jar. */
  public static String version() {
    String version = PythonApi.class.getPackage().getImplementationVersion();
    return version == null ? "unknown" : version;
  }

  /** See {@link AesGcm#provider}. */
  public static String cipherProvider() {
    return AesGcm.provider();
  }

  /**
   * Does an operation: see {@link Operations#json}.
   *
   * @param progress one of {@link #progress}, or null
   */
  public static String run(
      SparkSession spark, String operation, String arguments, Progress progress) {
    return in(spark, () -> Operations.json(spark, Target.NONE, operation, arguments, progress));
  }

  /** What tells another thread how far a call is: {@link Progress#json()}. */
  public static Progress progress(SparkSession spark) {
    return new Progress(spark.sparkContext());
  }

  private static Progress told(SparkSession spark, Progress progress) {
    return progress == null ? progress(spark) : progress;
  }

  /**
   * See {@link TableVerifier#verify}.
   *
   * @param options as the operation verify_encryption takes them, in JSON
   * @param progress one of {@link #progress}, or null
   */
  public static VerifyResult verifyTable(
      SparkSession spark, String table, String options, Progress progress) {
    return in(
        spark,
        () ->
            TableVerifier.verify(
                spark,
                table,
                Operations.verifyOptions(spark, table, options),
                told(spark, progress)));
  }

  /**
   * See {@link FolderVerifier#verify}.
   *
   * @param progress one of {@link #progress}, or null
   */
  public static VerifyResult verifyFolder(
      SparkSession spark, String uri, boolean deep, Progress progress) {
    return in(spark, () -> FolderVerifier.verify(spark, uri, deep, told(spark, progress)));
  }

  /**
   * Checks every tag of a file that a table of a catalog of ours reaches.
   *
   * @param decryptTo see {@link KeyedInspection#check}
   * @return what that gives, as JSON
   */
  public static String checkFileOfTable(
      SparkSession spark, String path, String table, String decryptTo) {
    return in(
        spark,
        () -> {
          Target found = Target.ofTable(spark, table);
          return Json.of(
              KeyedInspection.ofTable(found.catalog(), found.table(), path).check(decryptTo));
        });
  }

  /**
   * Checks every tag of a file whose DEK is in a file or an environment variable, in hex.
   *
   * @param keyFile the file; null: keyEnv is given
   * @param keyEnv the variable; null: keyFile is given
   * @param aadPrefix the AAD prefix, in hex
   * @param decryptTo see {@link KeyedInspection#check}
   * @return what that gives, as JSON
   */
  public static String checkFile(
      SparkSession spark,
      String path,
      String keyFile,
      String keyEnv,
      String aadPrefix,
      String decryptTo) {
    Map<String, String> given = new HashMap<>();
    given.put("key_file", keyFile);
    given.put("key_env", keyEnv);
    SecretSource dek = SecretSource.required(new PropertyReader(given), "key_env", "key_file");
    try (ResolvingFileIO io = Storage.any(spark.sessionState().newHadoopConf())) {
      InputFile file = io.newInputFile(path);
      return Json.of(KeyedInspection.withKey(file, dek.read(), aadPrefix).check(decryptTo));
    }
  }

  /**
   * Rewraps the keys of Parquet files that are beside the files. A cancel does not interrupt it:
   * between two steps of Parquet's, a file cannot be read.
   *
   * @return what {@link KeyMaterialRotation#rotate} gives, as JSON
   */
  public static String rotateParquetKeys(SparkSession spark, String folder) {
    return Json.of(KeyMaterialRotation.rotate(folder, spark.sessionState().newHadoopConf()));
  }

  /** See {@link DocumentSignature#sign}; with the KMS of a catalog. */
  public static String signReport(
      SparkSession spark, String catalog, String keyId, String document) {
    return in(
        spark,
        () -> {
          CatalogContext found = Target.catalog(spark, catalog).context();
          return DocumentSignature.sign(document, keyId, found.allowedKeyIds(), found.kms());
        });
  }

  /**
   * Cancels all calls that are under way, and all of Spark's jobs, as PySpark does on Ctrl-C:
   * Python no longer waits for them.
   *
   * @return how many calls that were
   */
  public static int cancel(SparkSession spark) {
    int calls;
    synchronized (UNDER_WAY) {
      UNDER_WAY.forEach(CancelledException::cancel);
      calls = UNDER_WAY.size();
    }

    spark.sparkContext().cancelAllJobs();
    return calls;
  }

  /** Spark looks for catalogs in the active session's settings, whichever session is asked. */
  private static <T> T in(SparkSession spark, Supplier<T> work) {
    Option<SparkSession> before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(spark);
    synchronized (UNDER_WAY) {
      UNDER_WAY.add(Thread.currentThread());
    }

    try {
      return work.get();
    } finally {
      synchronized (UNDER_WAY) {
        UNDER_WAY.remove(Thread.currentThread());
        CancelledException.ended(); // the thread is Py4J's, and serves other calls
      }

      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }
}
