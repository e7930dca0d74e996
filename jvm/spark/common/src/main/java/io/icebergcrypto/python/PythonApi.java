package io.icebergcrypto.python;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.DocumentSignature;
import io.icebergcrypto.audit.EncryptionKeys;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.KeyPruning;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.lifecycle.repair.TableRepair;
import io.icebergcrypto.orc.OrcDoctor;
import io.icebergcrypto.parquet.KeyMaterialRotation;
import io.icebergcrypto.parquet.ParquetDoctor;
import io.icebergcrypto.spark.Artifact;
import io.icebergcrypto.spark.EncryptedSparkCatalog;
import io.icebergcrypto.spark.SparkCatalogs;
import io.icebergcrypto.spark.inspect.FileLook;
import io.icebergcrypto.spark.inspect.KeyedInspection;
import io.icebergcrypto.spark.inspect.TablesExamined;
import io.icebergcrypto.spark.migrate.EncryptedInPlace;
import io.icebergcrypto.spark.migrate.TableDecryption;
import io.icebergcrypto.spark.migrate.TableEncryption;
import io.icebergcrypto.spark.migrate.purge.PlaintextPurge;
import io.icebergcrypto.spark.migrate.purge.PurgeOptions;
import io.icebergcrypto.spark.migrate.purge.Purged;
import io.icebergcrypto.spark.rewrite.TableReencryption;
import io.icebergcrypto.spark.verify.FolderVerifier;
import io.icebergcrypto.spark.verify.TableVerifier;
import io.icebergcrypto.spark.verify.VerifyOptions;
import io.icebergcrypto.spark.verify.VerifyResult;
import io.icebergcrypto.spark.verify.scan.CatalogTables;
import io.icebergcrypto.spark.verify.scan.Progress;
import io.icebergcrypto.spark.verify.scan.TableNames;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import scala.Option;

/**
 * All that the Python package calls; nothing else calls it. Arguments and answers are strings and
 * numbers; structures are JSON.
 */
public final class PythonApi {
  /** The catalog that Iceberg takes for a path. */
  private static final String PATH_CATALOG = "default_iceberg";

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

  /**
   * Recognizes a file from its bytes; with the session's KMS also the columns, and their data, of a
   * Parquet or ORC file whose columns have keys.
   *
   * @param path any location that Iceberg's ResolvingFileIO reads: a local path, s3://, gs://,
   *     abfs://, hdfs://
   * @return what {@link FileLook#at} gives, as JSON
   */
  public static String inspectFile(SparkSession spark, String path, boolean pages) {
    try (ResolvingFileIO io = fileIO(spark)) {
      return Json.of(FileLook.at(path, io, io.getConf(), pages));
    }
  }

  /**
   * Wraps the keys of Parquet files anew that are beside the files.
   *
   * @return what {@link KeyMaterialRotation#rotate} gives, as JSON
   */
  public static String rotateParquetKeys(SparkSession spark, String folder) {
    return Json.of(KeyMaterialRotation.rotate(folder, spark.sessionState().newHadoopConf()));
  }

  /**
   * Examines the session's settings for keys in Parquet files.
   *
   * @return what {@link ParquetDoctor#examine} gives, as JSON; null: there are none
   */
  public static String examineParquet(SparkSession spark) {
    return examined(ParquetDoctor.examine(spark.sessionState().newHadoopConf()));
  }

  /**
   * Examines the session's settings for keys in ORC files.
   *
   * @return what {@link OrcDoctor#examine} gives, as JSON; null: there are none
   */
  public static String examineOrc(SparkSession spark) {
    return examined(OrcDoctor.examine(spark.sessionState().newHadoopConf()));
  }

  private static String examined(Map<String, Object> found) {
    return found == null ? null : Json.of(found);
  }

  private static ResolvingFileIO fileIO(SparkSession spark) {
    ResolvingFileIO io = new ResolvingFileIO();
    io.setConf(spark.sessionState().newHadoopConf());
    io.initialize(Map.of());
    return io;
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
          Named named = Named.of(spark, table);
          return Json.of(
              KeyedInspection.ofTable(spark, named.catalog, named.table, path).check(decryptTo));
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
    try (ResolvingFileIO io = fileIO(spark)) {
      InputFile file = io.newInputFile(path);
      return Json.of(KeyedInspection.withKey(file, dek.read(), aadPrefix).check(decryptTo));
    }
  }

  /** What tells another thread how far a verification is: {@link Progress#json()}. */
  public static Progress progress(SparkSession spark) {
    return new Progress(spark.sparkContext());
  }

  /**
   * See {@link TableVerifier#verify}.
   *
   * @param options as {@link VerifyOptions#ofJson} reads them
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
                VerifyOptions.ofJson(options),
                progress == null ? progress(spark) : progress));
  }

  /**
   * See {@link CatalogTables#of}.
   *
   * @param name a catalog ({@code lake}) or a namespace ({@code lake.db}), with or without {@code
   *     .*} after it
   * @return {@link CatalogTables.Listed} as JSON
   */
  public static String listTables(SparkSession spark, String name) {
    return in(spark, () -> Json.of(select(spark, name, List.of()).listed()));
  }

  /**
   * See {@link CatalogTables#without}.
   *
   * @param name as of {@link #listTables}
   * @param exceptTables the tables to leave out
   * @return {@link CatalogTables.Selected} as JSON
   */
  public static String selectTables(SparkSession spark, String name, List<String> exceptTables) {
    return in(spark, () -> Json.of(select(spark, name, exceptTables)));
  }

  private static CatalogTables.Selected select(
      SparkSession spark, String name, List<String> exceptTables) {
    List<String> parts = TableNames.parts(spark, name);
    TableCatalog catalog = CatalogTables.catalog(spark, parts.get(0));
    String[] namespace = parts.subList(1, parts.size()).toArray(String[]::new);
    List<CatalogTables.Listed> listed =
        CatalogTables.of(spark, catalog, SparkCatalogs.encryptedOrNull(catalog), namespace);
    return CatalogTables.without(spark, catalog, listed, exceptTables);
  }

  /** See {@link CatalogTables#lists}, of a name that {@link #listTables} gave. */
  public static boolean isListed(SparkSession spark, String table) {
    return in(
        spark,
        () -> {
          TableCatalog catalog =
              CatalogTables.catalog(spark, TableNames.parts(spark, table).get(0));
          return CatalogTables.lists(spark, catalog, SparkCatalogs.encryptedOrNull(catalog), table);
        });
  }

  /**
   * See {@link FolderVerifier#verify}.
   *
   * @param progress one of {@link #progress}, or null
   */
  public static VerifyResult verifyFolder(
      SparkSession spark, String uri, boolean deep, Progress progress) {
    Progress told = progress == null ? progress(spark) : progress;
    return in(spark, () -> FolderVerifier.verify(spark, uri, deep, told));
  }

  /**
   * The keys of a table of a catalog of ours.
   *
   * @return {@link EncryptionKeys#toJson()}
   */
  public static String encryptionKeys(SparkSession spark, String table) {
    return in(
        spark,
        () -> {
          Named named = Named.of(spark, table);
          return EncryptionKeys.of(named.catalog, named.table).toJson();
        });
  }

  /**
   * Has the KEKs of a table of a catalog of ours wrapped anew.
   *
   * @param newKeyId the id of another master key; null: the newest version of the same
   * @param fromCatalog a catalog with the KMS that wrapped them; null: the table's own
   * @return {@link MasterKeyRotation#toMap()} as JSON
   */
  public static String rotateMasterKey(
      SparkSession spark, String table, String newKeyId, String fromCatalog, boolean dryRun) {
    return changed(
        spark,
        table,
        (catalog, name) ->
            (fromCatalog == null
                    ? MasterKeyRotation.run(catalog, name, newKeyId, dryRun)
                    : MasterKeyRotation.run(
                        catalog, name, newKeyId, catalog(spark, fromCatalog).kms(), dryRun))
                .toMap());
  }

  /**
   * Which master keys a table of a catalog of ours needs.
   *
   * @return {@link MasterKeyUse#toMap()} as JSON
   */
  public static String masterKeyUse(SparkSession spark, String table) {
    return in(
        spark,
        () -> {
          Named named = Named.of(spark, table);
          return Json.of(MasterKeyUse.of(named.catalog, named.table).toMap());
        });
  }

  /**
   * The version of a master key that wraps now.
   *
   * @param name a catalog, or a namespace in it
   * @return null when wrapped keys do not tell
   */
  public static Integer wrappingVersion(SparkSession spark, String name, String keyId) {
    return in(
        spark,
        () -> {
          EncryptedCatalog catalog = catalog(spark, TableNames.parts(spark, name).get(0));
          OptionalInt version = catalog.kms().wrappingVersion(keyId);
          return version.isPresent() ? (Integer) version.getAsInt() : null;
        });
  }

  /**
   * Gives a table of a catalog of ours a new KEK.
   *
   * @param rewrap whether the keys of its snapshots are encrypted with it, too
   * @return {@link KekRotation#toMap()} as JSON
   */
  public static String rotateKek(SparkSession spark, String table, boolean rewrap, boolean dryRun) {
    return changed(
        spark, table, (catalog, name) -> KekRotation.run(catalog, name, rewrap, dryRun).toMap());
  }

  /**
   * Encrypts a table of a catalog of ours in place.
   *
   * @param maxBytes how much this call copies, in digits; null: all
   * @param progress one of {@link #progress}, or null
   * @return {@link EncryptedInPlace#toMap()} as JSON
   */
  public static String encryptTable(
      SparkSession spark,
      String table,
      String keyId,
      String maxBytes,
      boolean dryRun,
      Progress progress) {
    long most = maxBytes == null ? Long.MAX_VALUE : Long.parseLong(maxBytes);
    Progress told = progress == null ? progress(spark) : progress;
    return changed(
        spark,
        table,
        (catalog, name) ->
            TableEncryption.run(spark, catalog, name, keyId, most, dryRun, told).toMap());
  }

  /**
   * Decrypts a table of a catalog of ours in place.
   *
   * @param progress one of {@link #progress}, or null
   * @return {@link TableDecryption#run} as JSON
   */
  public static String decryptTable(
      SparkSession spark, String table, boolean allowPlaintext, Progress progress) {
    Progress told = progress == null ? progress(spark) : progress;
    return changed(
        spark,
        table,
        (catalog, name) -> TableDecryption.run(spark, catalog, name, allowPlaintext, told));
  }

  /**
   * Deletes the files that a table had before it was encrypted in place.
   *
   * @param progress one of {@link #progress}, or null
   * @return {@link Purged#toMap()} as JSON
   */
  public static String purgePlaintext(
      SparkSession spark, String table, String options, Progress progress) {
    Progress told = progress == null ? progress(spark) : progress;
    PurgeOptions given = PurgeOptions.ofJson(options);
    return changed(
        spark,
        table,
        (catalog, name) -> PlaintextPurge.run(spark, catalog, name, given, told).toMap());
  }

  /**
   * Removes the keys that nothing needs from the metadata of a table of a catalog of ours.
   *
   * @return {@link KeyPruning#toMap()} as JSON
   */
  public static String pruneEncryptionKeys(SparkSession spark, String table, boolean dryRun) {
    return changed(spark, table, (catalog, name) -> KeyPruning.run(catalog, name, dryRun).toMap());
  }

  /**
   * Writes all files of the main branch of a table of a catalog of ours anew, under new keys.
   *
   * @param options of Iceberg's rewrite_data_files, as a JSON object
   * @return {@link TableReencryption#toMap()} as JSON
   */
  public static String reencryptTable(
      SparkSession spark, String table, String options, boolean dryRun) {
    return changed(
        spark,
        table,
        (catalog, name) ->
            TableReencryption.run(spark, catalog, name, Json.texts(options), dryRun).toMap());
  }

  /**
   * Says what is wrong with a table of a catalog of ours.
   *
   * @param yes whether what can be mended is mended
   * @return {@link TableRepair#toMap()} as JSON
   */
  public static String repairTable(SparkSession spark, String table, boolean yes) {
    return changed(spark, table, (catalog, name) -> TableRepair.run(catalog, name, yes).toMap());
  }

  /** Changes a table of a catalog of ours, which Spark then loads again. */
  private static String changed(
      SparkSession spark,
      String table,
      BiFunction<EncryptedCatalog, TableIdentifier, Map<String, Object>> change) {
    return in(
        spark,
        () -> {
          Named named = Named.of(spark, table);
          Map<String, Object> result = change.apply(named.catalog, named.table);
          if (named.found != null) {
            ((TableCatalog) named.found.catalog()).invalidateTable(named.found.identifier());
          }

          return Json.of(result);
        });
  }

  /**
   * Examines tables, several at once.
   *
   * @param tables their full names, as a JSON list
   * @return see {@link TablesExamined#json}
   */
  public static String examineTables(SparkSession spark, String tables) {
    return in(spark, () -> TablesExamined.json(spark, tables));
  }

  /**
   * The KMS counters of a catalog in the driver's JVM.
   *
   * @return {@link io.icebergcrypto.kms.CachingKmsClient#snapshot()} as JSON
   */
  public static String kmsMetrics(SparkSession spark, String catalog) {
    return in(spark, () -> Json.of(catalog(spark, catalog).kms().snapshot()));
  }

  /**
   * Proves that a master key can wrap and unwrap.
   *
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's typed error when it cannot
   */
  public static void checkKey(SparkSession spark, String catalog, String keyId) {
    in(
        spark,
        () -> {
          catalog(spark, catalog).kms().check(keyId);
          return keyId;
        });
  }

  /** See {@link DocumentSignature#sign}; with the KMS of a catalog. */
  public static String signReport(
      SparkSession spark, String catalog, String keyId, String document) {
    return in(
        spark,
        () -> {
          EncryptedCatalog found = catalog(spark, catalog);
          return DocumentSignature.sign(document, keyId, found.allowedKeyIds(), found.kms());
        });
  }

  /** See {@link DocumentSignature#check}; with the KMS of a catalog. */
  public static void checkReport(
      SparkSession spark, String catalog, String keyId, String document) {
    in(
        spark,
        () -> {
          EncryptedCatalog found = catalog(spark, catalog);
          DocumentSignature.check(document, keyId, found.allowedKeyIds(), found.kms());
          return document;
        });
  }

  /**
   * Cancels all calls that are under way, and all of Spark's jobs, as PySpark does on Ctrl-C:
   * Python does not wait for them any more.
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

  /**
   * A table of a catalog of ours, as Spark and as Iceberg name it; Spark has no name for a path.
   */
  private record Named(
      CatalogAndIdentifier found, EncryptedCatalog catalog, TableIdentifier table) {
    static Named of(SparkSession spark, String name) {
      if (TableNames.isPath(name)) {
        return new Named(
            null, PythonApi.catalog(spark, PATH_CATALOG).byPath(), TableIdentifier.of(name));
      }

      CatalogAndIdentifier found = TableNames.find(spark, name);
      EncryptedCatalog catalog = PythonApi.catalog(spark, found.catalog().name());
      TableIdentifier table = Spark3Util.identifierToTableIdentifier(found.identifier());
      return !table.hasNamespace() && TableNames.isPath(table.name())
          ? new Named(null, catalog.byPath(), table)
          : new Named(found, catalog, table);
    }
  }

  private static EncryptedCatalog catalog(SparkSession spark, String name) {
    CatalogPlugin plugin =
        name.equals(PATH_CATALOG)
            ? spark.sessionState().catalogManager().catalog(name)
            : TableNames.catalog(spark, name);
    EncryptedCatalog ours = SparkCatalogs.encryptedOrNull(plugin);
    if (ours != null) {
      return ours;
    }

    throw new NotSupportedException(
        String.format("Catalog %s is not an encrypting one: %s", name, plugin.getClass().getName()),
        "Set spark.sql.catalog." + name + "=" + EncryptedSparkCatalog.class.getName() + ".");
  }
}
