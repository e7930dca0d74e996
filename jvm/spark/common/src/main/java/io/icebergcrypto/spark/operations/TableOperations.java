package io.icebergcrypto.spark.operations;

import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.cleanup.PurgeResult;
import io.icebergcrypto.lifecycle.repair.TableRepair;
import io.icebergcrypto.spark.migrate.EncryptionOptions;
import io.icebergcrypto.spark.migrate.TableDecryption;
import io.icebergcrypto.spark.migrate.TableEncryption;
import io.icebergcrypto.spark.migrate.purge.PlaintextPurge;
import io.icebergcrypto.spark.migrate.purge.PurgeOptions;
import io.icebergcrypto.spark.migrate.purge.PurgeReport;
import io.icebergcrypto.spark.rewrite.TableReencryption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What changes a whole table: encrypts, decrypts, repairs or purges it. */
final class TableOperations {
  private static final String OUTSIDE = "folder with old files, not one of the table's";
  private static final String OUTSIDE_FILE = "old file, not in the table's folders";
  private static final String LEFT = "left: not known to be this table's, or to be kept";
  private static final String GAP = "cannot be read: ";

  static final List<Operation> ALL =
      List.of(
          Operation.procedure(
              "encrypt_table",
              "Encrypts a plaintext table in place",
              "table STRING NOT NULL, key_id STRING NOT NULL, dry_run BOOLEAN, max_bytes BIGINT,"
                  + " throttle BIGINT",
              "table STRING NOT NULL, key_id STRING NOT NULL, refs INT NOT NULL, files BIGINT NOT"
                  + " NULL, bytes BIGINT NOT NULL, copied_files BIGINT NOT NULL, files_left BIGINT"
                  + " NOT NULL, rows BIGINT, kms_calls INT NOT NULL, seconds BIGINT,"
                  + " plaintext_metadata STRING, dry_run BOOLEAN NOT NULL, committed BOOLEAN NOT"
                  + " NULL, message STRING NOT NULL",
              call ->
                  Answer.row(
                      TableEncryption.run(
                          call.spark(),
                          call.catalog(),
                          call.table(),
                          new EncryptionOptions(
                              call.text("key_id"),
                              call.number("max_bytes", Long.MAX_VALUE),
                              call.number("throttle", Long.MAX_VALUE),
                              call.flag("dry_run")),
                          call.progress()))),
          Operation.procedure(
              "decrypt_table",
              "Decrypts a table in place: its files are plaintext then",
              "table STRING NOT NULL, confirm BOOLEAN",
              "table STRING NOT NULL, old_key_id STRING NOT NULL, files BIGINT NOT NULL, bytes"
                  + " BIGINT NOT NULL, committed BOOLEAN NOT NULL, message STRING NOT NULL",
              call ->
                  Answer.row(
                      TableDecryption.run(
                          call.spark(),
                          call.catalog(),
                          call.table(),
                          call.flag("confirm"),
                          call.progress()))),
          Operation.procedure(
              "purge_plaintext",
              "Deletes the plaintext files that a table had before it was encrypted in place",
              "table STRING NOT NULL, dry_run BOOLEAN, folders ARRAY<STRING>, keep ARRAY<STRING>,"
                  + " accept_missing BOOLEAN",
              "table STRING NOT NULL, path STRING, files BIGINT, bytes BIGINT, deleted BOOLEAN NOT"
                  + " NULL, message STRING",
              TableOperations::purgePlaintext),
          Operation.procedure(
              "reencrypt_table",
              "Rewrites all files of a table's main branch, under new keys",
              "table STRING NOT NULL, options MAP<STRING,STRING>, dry_run BOOLEAN",
              "table STRING NOT NULL, data_files BIGINT NOT NULL, delete_files BIGINT NOT NULL,"
                  + " bytes BIGINT NOT NULL, left BIGINT NOT NULL, snapshots INT NOT NULL, refs"
                  + " STRING NOT NULL, expire_statement STRING, committed BOOLEAN NOT NULL, message"
                  + " STRING NOT NULL",
              call ->
                  Answer.row(
                      TableReencryption.run(
                          call.spark(),
                          call.catalog(),
                          call.table(),
                          call.map("options"),
                          call.flag("dry_run")))),
          Operation.procedure(
                  "repair_table",
                  "Says what is wrong with a table that cannot be used and, on request, repairs it",
                  "table STRING NOT NULL, confirm BOOLEAN",
                  "kind STRING NOT NULL, problem STRING NOT NULL, consequence STRING NOT NULL,"
                      + " hint STRING NOT NULL, repairable BOOLEAN NOT NULL, repaired BOOLEAN"
                      + " NOT NULL",
                  call -> {
                    TableRepair done =
                        TableRepair.run(call.catalog(), call.table(), call.flag("confirm"));
                    return new Answer(
                        done.toMap(), done.findings().stream().map(Finding::toMap).toList());
                  })
              .withPaths(),
          Operation.procedure(
              "authenticate_metadata",
              "Signs a table's metadata as it is, after it was refused and checked",
              "table STRING NOT NULL, metadata_file STRING NOT NULL, metadata_sha256 STRING",
              "authenticated_table STRING NOT NULL",
              call -> {
                call.catalog()
                    .context()
                    .authenticateMetadata(
                        call.table(), call.text("metadata_file"), call.text("metadata_sha256"));
                return Answer.row(Map.of("authenticated_table", call.text(Operation.TABLE)));
              }),
          Operation.procedure(
              "purge_without_key",
              "Drops an encrypted table whose key is not available, and deletes its location",
              "table STRING NOT NULL, confirm BOOLEAN",
              "deleted_files_count BIGINT NOT NULL, deleted_bytes BIGINT NOT NULL, folders_left"
                  + " STRING NOT NULL",
              call -> {
                PurgeResult purged =
                    call.catalog().context().purgeWithoutKey(call.table(), call.flag("confirm"));
                return Answer.row(
                    Map.of(
                        "deleted_files_count",
                        purged.files(),
                        "deleted_bytes",
                        purged.bytes(),
                        "folders_left",
                        String.join(", ", purged.left())));
              }));

  private TableOperations() {}

  /**
   * A row with the sums, then one for each of the first 1000 files; and, with a message, for what
   * it does not delete.
   */
  private static Answer purgePlaintext(Call call) {
    PurgeOptions options =
        new PurgeOptions(
            call.flag("dry_run"),
            call.texts("folders"),
            call.texts("keep"),
            call.flag("accept_missing"));
    PurgeReport purged =
        PlaintextPurge.run(call.spark(), call.catalog(), call.table(), options, call.progress());
    List<Map<String, Object>> rows = new ArrayList<>();
    boolean deleted = purged.committed();
    rows.add(row(purged, null, purged.files(), purged.bytes(), deleted, purged.message()));
    purged.paths().forEach(path -> rows.add(row(purged, path, null, null, deleted, null)));
    purged
        .outside()
        .forEach((folder, files) -> rows.add(row(purged, folder, files, null, false, OUTSIDE)));
    purged
        .outsidePaths()
        .forEach(path -> rows.add(row(purged, path, null, null, false, OUTSIDE_FILE)));
    purged.leftPaths().forEach(path -> rows.add(row(purged, path, null, null, false, LEFT)));
    purged.gaps().forEach(gap -> rows.add(row(purged, null, null, null, false, GAP + gap)));
    return new Answer(purged.toMap(), rows);
  }

  private static Map<String, Object> row(
      PurgeReport purged, String path, Long files, Long bytes, boolean deleted, String message) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("table", purged.table());
    row.put("path", path);
    row.put("files", files);
    row.put("bytes", bytes);
    row.put("deleted", deleted);
    row.put("message", message);
    return row;
  }
}
