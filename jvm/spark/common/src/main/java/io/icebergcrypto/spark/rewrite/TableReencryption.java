package io.icebergcrypto.spark.rewrite;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.format.Outcome;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.lifecycle.encrypt.SinkProgress;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.Table;
import org.apache.iceberg.actions.RewriteDataFiles;
import org.apache.iceberg.actions.SizeBasedFileRewritePlanner;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.relocated.com.google.common.collect.Streams;
import org.apache.iceberg.spark.actions.SparkActions;
import org.apache.spark.sql.SparkSession;

/**
 * All files of a table's main branch rewritten, under new keys: for when the key of a file leaked.
 * Older files stay, readable in other snapshots, branches and tags, until these are expired or
 * dropped.
 *
 * @param table the table's full name
 * @param dataFiles how many data files the main branch had
 * @param deleteFiles how many delete files, which were applied
 * @param bytes the bytes of both
 * @param left how many older files and manifests the main branch still has
 * @param snapshots how many other snapshots there are that may expire, and may reach older files
 * @param refs the other branches and the tags, which keep such snapshots from expiry
 * @param expireStatement the SQL that expires the other snapshots; null when it has no others, and
 *     where what sinks look for in them was not repeated, see {@link SinkProgress}: of a dry run,
 *     of a table without files, and where other commits always came between
 * @param committed whether the table was changed: not by a dry run, nor when it has no files
 */
public record TableReencryption(
    String table,
    long dataFiles,
    long deleteFiles,
    long bytes,
    long left,
    int snapshots,
    String refs,
    String expireStatement,
    boolean committed)
    implements Outcome {
  /** Not the caller's to choose; the last one would have Spark shuffle keys of delete files. */
  private static final Set<String> FIXED =
      Set.of(
          SizeBasedFileRewritePlanner.REWRITE_ALL,
          RewriteDataFiles.USE_STARTING_SEQUENCE_NUMBER,
          RewriteDataFiles.REMOVE_DANGLING_DELETES);

  /** With its zone: whoever runs the statement may do so in a session of another one. */
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS 'UTC'").withZone(ZoneOffset.UTC);

  /**
   * Has Iceberg rewrite all data files of the main branch, with their deletes applied, and removes
   * the delete files. Manifests and manifest lists of commits are new anyway.
   *
   * @param options of Iceberg's {@code rewrite_data_files}
   * @param dryRun true: nothing is written; files and bytes are counted
   * @throws NotSupportedException when the table is not encrypted
   * @throws InvalidConfigurationException when an option is one that this call sets itself
   * @throws IcebergCryptoException the commit's own error, and nothing was changed, but for what
   *     was committed before with partial progress; or one that says that the rewrite has ended,
   *     and what is left could not be counted
   */
  public static TableReencryption run(
      SparkSession spark,
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      Map<String, String> options,
      boolean dryRun) {
    Table table = DeleteGuard.in(encrypted(catalog.loadTable(identifier)));
    check(table.name(), options);
    Snapshot start = table.currentSnapshot();
    LiveFiles before =
        start == null ? LiveFiles.NONE : LiveFiles.addedUpTo(start.sequenceNumber(), spark, table);
    if (dryRun || before.data() + before.deletes() == 0) {
      return found(table, before, 0, OptionalLong.empty(), false);
    }

    rewrite(spark, table, options);
    try {
      CancelledException.check(); // with partial progress, Iceberg passes over what was cancelled
      long left = left(spark, table, start.sequenceNumber());
      return found(table, before, left, SinkProgress.repeat(table), true);
    } catch (RuntimeException e) {
      throw afterwards(table.name(), e);
    }
  }

  /**
   * What was found.
   *
   * @param later than the snapshots that may expire; none if it was not seen to that they may
   */
  private static TableReencryption found(
      Table table, LiveFiles before, long left, OptionalLong later, boolean committed) {
    table.refresh();
    Snapshot current = table.currentSnapshot();
    long time = later.orElse(Long.MAX_VALUE);
    long others =
        Streams.stream(table.snapshots())
            .filter(one -> current == null || one.snapshotId() != current.snapshotId())
            .filter(one -> one.timestampMillis() < time)
            .count();
    return new TableReencryption(
        table.name(),
        before.data(),
        before.deletes(),
        before.bytes(),
        left,
        (int) others,
        refs(table),
        later.isEmpty() || others == 0 ? null : expireStatement(table.name(), time),
        committed);
  }

  /** The error once the rewrite is committed: nobody shall take it for one before that. */
  private static IcebergCryptoException afterwards(String table, RuntimeException e) {
    IcebergCryptoException cause =
        Causes.typed(e)
            .orElseGet(() -> new IcebergCryptoException(e.getMessage(), "Fix what failed.", e));
    return cause
        .withProblem(
            "its rewrite has ended, and what it committed stays; what is left was not counted: "
                + cause.problem())
        .withHint(
            "Then call reencrypt_table again, to be sure that no older file is left: it rewrites"
                + " all files once more.")
        .inTable(table);
  }

  private static EncryptedTable encrypted(Table table) {
    if (!(table instanceof EncryptedTable encrypted)) {
      throw NotSupportedException.ofMetadataTable(table.name());
    }

    if (!table.properties().containsKey(EncryptionProperties.KEY_ID)) {
      throw new NotEncryptedException(
              "There are no keys to replace. encrypt_table encrypts it in place.")
          .inTable(table.name());
    }

    return encrypted;
  }

  private static void check(String table, Map<String, String> options) {
    for (String option : options.keySet()) {
      if (FIXED.contains(option)) {
        throw new InvalidConfigurationException(
                String.format("reencrypt_table does not take the option %s", option),
                "Leave it out: all files are rewritten, and their deletes applied.")
            .inTable(table);
      }
    }
  }

  private static void rewrite(SparkSession spark, Table table, Map<String, String> options) {
    try {
      SparkActions.get(spark)
          .rewriteDataFiles(table)
          .options(options)
          .option(SizeBasedFileRewritePlanner.REWRITE_ALL, "true")
          .execute();
    } catch (IllegalArgumentException e) {
      throw new InvalidConfigurationException(
              e.getMessage(), "Give options of Iceberg's rewrite_data_files.", e)
          .inTable(table.name());
    } catch (RuntimeException e) {
      CancelledException.rethrow(e);
      if (e.getCause() instanceof ValidationException
          || e.getCause() instanceof CommitFailedException) {
        throw new IcebergCryptoException(
                "another commit has changed files while they were rewritten: "
                    + e.getCause().getMessage(),
                "The table is as that commit left it. Call reencrypt_table again.",
                e)
            .inTable(table.name());
      }

      throw e;
    }
  }

  /**
   * How many files and manifests of up to a sequence number are left, once delete files that apply
   * to nothing are removed.
   */
  private static long left(SparkSession spark, Table table, long sequenceNumber) {
    table.refresh();
    LiveFiles files = LiveFiles.addedUpTo(sequenceNumber, spark, table);
    if (files.deletes() > 0) { // Iceberg has removed those of single data files
      DanglingDeletes.remove(table, sequenceNumber);
      table.refresh();
      files = LiveFiles.addedUpTo(sequenceNumber, spark, table);
    }

    long manifests =
        table.currentSnapshot().allManifests(table.io()).stream()
            .filter(manifest -> manifest.sequenceNumber() <= sequenceNumber)
            .count();
    return files.data() + files.deletes() + manifests;
  }

  private static String refs(Table table) {
    Snapshot current = table.currentSnapshot();
    return table.refs().entrySet().stream()
        .filter(ref -> !ref.getKey().equals(SnapshotRef.MAIN_BRANCH))
        .filter(ref -> current == null || ref.getValue().snapshotId() != current.snapshotId())
        .map(Map.Entry::getKey)
        .sorted()
        .collect(Collectors.joining(", "));
  }

  private static String expireStatement(String table, long time) {
    return SqlNames.call(
        "expire_snapshots",
        table,
        String.format("older_than => TIMESTAMP '%s'", TIME.format(Instant.ofEpochMilli(time))),
        "retain_last => 1");
  }

  @Override
  public String message() {
    if (dataFiles + deleteFiles == 0) {
      return "it has no files; nothing was changed";
    }

    String files =
        String.format(
            "%s and %s (%,d bytes)",
            counted(dataFiles, "data file"), counted(deleteFiles, "delete file"), bytes);
    if (!committed) {
      return files + " would be rewritten; nothing was changed";
    }

    if (left > 0) {
      return String.format(
          "%s were to be rewritten, and main still has %s: call reencrypt_table again",
          files, counted(left, "older file or manifest", "older files and manifests"));
    }

    StringBuilder text = new StringBuilder(files);
    text.append(" rewritten: main has no older file or manifest.");
    if (snapshots > 0) {
      text.append(
          String.format(
              " Old files stay until %s expired%s: %s",
              counted(snapshots, "other snapshot is", "other snapshots are"),
              refs.isEmpty() ? "" : ", and these refs dropped: " + refs,
              expireStatement == null
                  ? "other writers have committed so often that what sinks look for in them could"
                      + " not be repeated. Expire them once each sink has committed after the"
                      + " others"
                  : expireStatement));
    }

    return text.toString();
  }

  private static String counted(long number, String one) {
    return counted(number, one, one + "s");
  }

  private static String counted(long number, String one, String many) {
    return String.format("%,d %s", number, number == 1 ? one : many);
  }
}
