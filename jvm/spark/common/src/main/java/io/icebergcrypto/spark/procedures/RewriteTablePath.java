package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.PathMapping;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.copy.CopyRequest;
import io.icebergcrypto.spark.copy.TableCopy;
import io.icebergcrypto.spark.table.TableNames;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** {@code rewrite_table_path}: encrypted tables are copied by {@link TableCopy}. */
final class RewriteTablePath extends IcebergProcedure {
  static final String NAME = "rewrite_table_path";

  /** The columns that Iceberg's procedure gives, too. */
  private static final StructType REWRITTEN =
      new StructType()
          .add("latest_version", DataTypes.StringType)
          .add("file_list_location", DataTypes.StringType)
          .add("rewritten_manifest_file_paths_count", DataTypes.IntegerType)
          .add("rewritten_delete_file_paths_count", DataTypes.IntegerType);

  RewriteTablePath(Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    super(procedure, catalog, encrypted);
  }

  @Override
  Iterator<Scan> call(Procedure icebergs, InternalRow input) {
    String table = textOrNull(input, "table");
    if (TableNames.isPath(table)) { // nor does Iceberg's take them
      throw new NotSupportedException(
          String.format("nothing was written: %s takes no paths, and '%s' is one", NAME, table),
          "Register the table in a catalog, and give its name, as in db.t.");
    }

    Optional<Found> found = find(table, catalog()).filter(Found::isEncrypted);
    if (found.isEmpty() || !found.get().catalog().equals(catalog().name())) {
      return icebergs.call(input); // it takes no table of another catalog
    }

    int createFileList = indexOf("create_file_list");
    TableCopy.Result copy =
        TableCopy.run(
            SparkSession.active(),
            encrypted(),
            Spark3Util.identifierToTableIdentifier(found.get().identifier()),
            new CopyRequest(
                new PathMapping(given(input, "source_prefix"), given(input, "target_prefix")),
                textOrNull(input, "start_version"),
                textOrNull(input, "end_version"),
                textOrNull(input, "staging_location"),
                input.isNullAt(createFileList) || input.getBoolean(createFileList)));
    return OperationProcedure.scan(
        REWRITTEN,
        List.<Object[]>of(
            new Object[] {
              copy.latestVersion(), copy.fileList(), copy.manifests(), copy.deleteFiles()
            }));
  }

  /** NULL is as nothing, which is refused. */
  private String given(InternalRow input, String parameter) {
    String text = textOrNull(input, parameter);
    return text == null ? "" : text;
  }
}
