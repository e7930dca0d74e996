package io.icebergcrypto.testing;

import io.icebergcrypto.format.FileInspection;
import io.icebergcrypto.format.FileInspector;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;

/** A process without Spark that works on encrypted tables. */
public final class PlainJava {
  private PlainJava() {}

  /**
   * Makes tables on a Hadoop catalog, one in each file format, and prints what is in them.
   *
   * @param args the folder, which has a keystore
   */
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    try {
      Class.forName("org.apache.spark.sql.SparkSession");
      throw new IllegalStateException("Spark is on the class path");
    } catch (ClassNotFoundException e) {
      // as it should be
    }

    TestLake lake =
        new TestLake(Backend.HADOOP, folder, TestKeystore.existing(folder).properties());
    Catalog catalog = lake.open(Map.of());
    for (String format : new String[] {"avro", "parquet"}) {
      Table table = TestLake.createTable(catalog, format, Map.of("write.format.default", format));
      TestLake.append(table, 1, 2);
      TestLake.append(table, 3);
      System.out.println(format + " " + TestLake.ids(lake.open(Map.of()).loadTable(id(format))));
      for (Path file : TestLake.files(table)) {
        FileInspection found = FileInspector.inspect(Files.localInput(file.toFile()));
        String algorithm = found.pare() == null ? "" : " " + found.pare().algorithm();
        System.out.println("file " + found.magic() + algorithm);
      }
    }
  }

  private static TableIdentifier id(String name) {
    return TableIdentifier.of(TestLake.DB, name);
  }
}
