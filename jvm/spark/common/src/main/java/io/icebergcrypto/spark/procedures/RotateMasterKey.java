package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.OurCatalog;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.verify.scan.TableNames;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.rotate_master_key(table => ... [, new_key_id => ...] [, dry_run => true] [,
 * from_catalog => ...])}: has a table's KEKs wrapped by the newest version of its master key, by
 * another one, or by one of another KMS. See {@link MasterKeyRotation}.
 */
final class RotateMasterKey extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "rotate_master_key";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("old_key_id", DataTypes.StringType, false)
          .add("new_key_id", DataTypes.StringType, false)
          .add("keks", DataTypes.IntegerType, false)
          .add("old_versions", DataTypes.StringType)
          .add("new_versions", DataTypes.StringType)
          .add("kms_calls", DataTypes.IntegerType, false)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false)
          .add("value_keys", DataTypes.IntegerType, false)
          .add("value_keys_left", DataTypes.StringType);

  RotateMasterKey(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Has a table's KEKs wrapped by the newest version of its master key, or by another key";
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {
      text("table"), optionalText("new_key_id"), flag("dry_run"), optionalText("from_catalog")
    };
  }

  @Override
  boolean takesPaths() {
    return true;
  }

  @Override
  List<Object[]> run(EncryptedCatalog catalog, TableIdentifier table, InternalRow input) {
    String newKeyId = text(input, 1);
    String from = text(input, 3);
    boolean dryRun = isSet(input, 2);
    MasterKeyRotation done =
        from == null
            ? MasterKeyRotation.run(catalog, table, newKeyId, dryRun)
            : MasterKeyRotation.run(catalog, table, newKeyId, kms(from), dryRun);
    return List.<Object[]>of(row(done.toMap()));
  }

  private static String text(InternalRow input, int index) {
    return input.isNullAt(index) ? null : input.getUTF8String(index).toString();
  }

  /** The KMS that a catalog is set up with. */
  private static CachingKmsClient kms(String catalog) {
    CatalogPlugin plugin = TableNames.catalog(SparkSession.active(), catalog);
    if (plugin instanceof OurCatalog ours) {
      return ours.encryptedCatalog().kms();
    }

    throw new NotSupportedException(
        String.format("from_catalog => '%s' is no catalog of this project", catalog),
        "Name one that is set up with the KMS that the table had before.");
  }
}
