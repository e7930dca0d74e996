package io.icebergcrypto.spark.operations;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.DocumentSignature;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.KeyPruning;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.spark.table.TableNames;
import java.util.List;

/** The keys of tables, and master keys. */
final class KeyOperations {
  private static final Operation ROTATE_KEK =
      Operation.procedure(
              "rotate_kek",
              "Gives a table a new KEK and, on request, encrypts the keys of its snapshots with"
                  + " it",
              "table STRING NOT NULL, rewrap BOOLEAN, dry_run BOOLEAN",
              "table STRING NOT NULL, key_id STRING NOT NULL, old_kek_id STRING, new_kek_id"
                  + " STRING, rewrapped INT NOT NULL, removed_keks INT NOT NULL, kept_keks INT"
                  + " NOT NULL, kms_calls INT NOT NULL, committed BOOLEAN NOT NULL, message"
                  + " STRING NOT NULL",
              call ->
                  Answer.row(
                      KekRotation.run(
                          call.catalog(), call.table(), call.flag("rewrap"), call.flag("dry_run"))))
          .withPaths();

  private static final Operation ROTATE_MASTER_KEY =
      Operation.procedure(
              "rotate_master_key",
              "Rewraps a table's KEKs with the newest version of its master key, or with another"
                  + " key",
              "table STRING NOT NULL, new_key_id STRING, dry_run BOOLEAN, from_catalog STRING",
              "table STRING NOT NULL, old_key_id STRING NOT NULL, new_key_id STRING NOT NULL,"
                  + " keks INT NOT NULL, old_versions STRING, new_versions STRING, kms_calls"
                  + " INT NOT NULL, committed BOOLEAN NOT NULL, message STRING NOT NULL,"
                  + " value_keys INT NOT NULL, value_keys_left STRING",
              KeyOperations::rotateMasterKey)
          .withPaths();

  static final List<Operation> ALL =
      List.of(
          Operation.procedure(
                  "encryption_keys",
                  "Lists the keys of an encrypted table, and checks them with its KMS",
                  "table STRING NOT NULL",
                  "key_id STRING NOT NULL, kind STRING NOT NULL, encrypted_by STRING, created_at"
                      + " TIMESTAMP_LTZ, age_days BIGINT, snapshots INT NOT NULL, overdue BOOLEAN"
                      + " NOT NULL, kms_answers BOOLEAN, authenticated_wrapping BOOLEAN, problem"
                      + " STRING, used_for STRING, key_length INT, key_version INT",
                  KeyOperations::list)
              .withPaths(),
          Operation.procedure(
                  "prune_encryption_keys",
                  "Removes the keys that nothing needs from a table's metadata",
                  "table STRING NOT NULL, dry_run BOOLEAN",
                  "table STRING NOT NULL, keys_before INT NOT NULL, removed INT NOT NULL, kept INT"
                      + " NOT NULL, bytes_before BIGINT NOT NULL, bytes_after BIGINT NOT NULL,"
                      + " committed BOOLEAN NOT NULL, message STRING NOT NULL",
                  call ->
                      Answer.row(
                          KeyPruning.run(call.catalog(), call.table(), call.flag("dry_run"))))
              .withPaths(),
          ROTATE_KEK,
          ROTATE_MASTER_KEY,
          Operation.call(
                  "master_key_use",
                  "table STRING NOT NULL",
                  call -> Answer.value(Json.map(MasterKeyUse.of(call.catalog(), call.table()))))
              .withPaths(),
          Operation.call(
              "rotate_catalog",
              "name STRING NOT NULL, new_key_id STRING, kek BOOLEAN, rewrap BOOLEAN, from_catalog"
                  + " STRING, older_than_days DOUBLE, again BOOLEAN, dry_run BOOLEAN, threads"
                  + " BIGINT",
              call -> Answer.value(CatalogRotation.of(call, ROTATE_KEK, ROTATE_MASTER_KEY))),
          Operation.call(
              "key_versions_in_use",
              "name STRING NOT NULL, threads BIGINT",
              call -> Answer.value(KeyVersions.of(call))),
          Operation.call(
                  "check_key",
                  "catalog STRING NOT NULL, key_id STRING NOT NULL, pass_over BOOLEAN",
                  KeyOperations::check)
              .onDriver(),
          Operation.call(
              "kms_metrics",
              "catalog STRING NOT NULL",
              call -> Answer.value(named(call).context().kms().snapshot())),
          Operation.call(
                  "check_report",
                  "catalog STRING NOT NULL, key_id STRING, document STRING NOT NULL",
                  call -> {
                    EncryptedCatalog catalog = named(call);
                    DocumentSignature.check(
                        call.text("document"),
                        call.text("key_id"),
                        catalog.context().allowedKeyIds(),
                        catalog.context().kms());
                    return Answer.value(null);
                  })
              .onDriver());

  private KeyOperations() {}

  private static EncryptedCatalog named(Call call) {
    return Target.catalog(call.spark(), call.text("catalog"));
  }

  /**
   * Has the KMS wrap and unwrap, if new tables of the catalog may have the key; with {@code
   * pass_over}, a key that they may not have is no error.
   *
   * @return whether it was tried
   */
  private static Answer check(Call call) {
    CatalogContext catalog = named(call).context();
    CachingKmsClient kms = catalog.kms();
    String keyId = call.text("key_id");
    try {
      catalog.checkMasterKey(keyId);
    } catch (AccessDeniedException | InvalidConfigurationException e) {
      if (call.flag("pass_over")) {
        return Answer.value(false);
      }

      throw e;
    }

    kms.check(keyId);
    return Answer.value(true);
  }

  private static Answer list(Call call) {
    EncryptionKeys keys = EncryptionKeys.of(call.catalog(), call.table());
    return new Answer(keys.toMap(), keys.keys().stream().map(Json::map).toList());
  }

  private static Answer rotateMasterKey(Call call) {
    String newKeyId = call.text("new_key_id");
    String from = call.text("from_catalog");
    boolean dryRun = call.flag("dry_run");
    return Answer.row(
        from == null
            ? MasterKeyRotation.run(call.catalog(), call.table(), newKeyId, dryRun)
            : MasterKeyRotation.run(
                call.catalog(), call.table(), newKeyId, former(call, from), dryRun));
  }

  /** The KMS that a catalog is set up with. */
  private static CachingKmsClient former(Call call, String from) {
    EncryptedCatalog catalog =
        EngineCatalog.encryptedOrNull(TableNames.catalog(call.spark(), from));
    if (catalog != null) {
      return catalog.context().kms();
    }

    throw new NotSupportedException(
        String.format("from_catalog => '%s' is not a catalog of this project", from),
        "Name one that is set up with the KMS that the table had before.");
  }
}
