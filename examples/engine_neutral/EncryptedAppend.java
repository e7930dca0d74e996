import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.types.Types;

/**
 * Writes and reads an encrypted table in plain Java, without a Spark session: EncryptedCatalog in
 * front of a Hadoop catalog. It works the same in any engine that loads Iceberg catalogs by {@code
 * catalog-impl}.
 *
 * <pre>
 * export KEYSTORE_PASSWORD=...    # of keys.p12, which has a key named sales
 * java -cp "iceberg-crypto-spark-4.1_2.13-0.1.0.jar:iceberg-spark-runtime-4.1_2.13-1.12.0.jar:$SPARK_HOME/jars/*" \
 *   examples/engine_neutral/EncryptedAppend.java warehouse keys.p12
 * </pre>
 *
 * <p>{@code make jar} builds the first jar into pyspark_iceberg_crypto/jars. Spark's jar folder is
 * needed only for Hadoop's classes.
 */
public final class EncryptedAppend {
  private static final TableIdentifier TABLE = TableIdentifier.of("shop", "visits");
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.required(2, "page", Types.StringType.get()));

  /** Arguments: the warehouse folder and the keystore. */
  public static void main(String[] args) throws IOException {
    Map<String, String> properties =
        Map.of(
            "catalog-impl", "io.icebergcrypto.catalog.EncryptedCatalog",
            "encryption.catalog-type", "hadoop",
            "warehouse", args[0],
            "encryption.kms-type", "keystore",
            "encryption.kms.keystore.path", args[1],
            "encryption.kms.keystore.password-env", "KEYSTORE_PASSWORD");
    Catalog catalog = CatalogUtil.buildIcebergCatalog("lake", properties, new Configuration());
    try (Closeable closing = (Closeable) catalog) {
      Table table =
          catalog.tableExists(TABLE)
              ? catalog.loadTable(TABLE)
              : catalog
                  .buildTable(TABLE, SCHEMA)
                  .withProperty("encryption.key-id", "sales")
                  .create();
      DataFile file = write(table);
      table.newAppend().appendFile(file).commit();

      System.out.println("wrote " + file.location());
      try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
        rows.forEach(row -> System.out.println("read " + row));
      }
    }
  }

  /** Writes one data file; the writer encrypts it with the table's encryption manager. */
  private static DataFile write(Table table) throws IOException {
    OutputFileFactory files = OutputFileFactory.builderFor(table, 1, System.nanoTime()).build();
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .build()
            .newDataWriter(files.newOutputFile(), table.spec(), null);
    try (writer) {
      for (long id = 1; id <= 3; id++) {
        Record row = GenericRecord.create(SCHEMA);
        row.setField("id", id);
        row.setField("page", "/page/" + id);
        writer.write(row);
      }
    }

    return writer.toDataFile();
  }
}
