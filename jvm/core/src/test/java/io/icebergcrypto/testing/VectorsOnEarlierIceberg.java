package io.icebergcrypto.testing;

import io.icebergcrypto.NotSupportedException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.IcebergBuild;
import org.apache.iceberg.Table;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.DVFileWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.puffin.Blob;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinWriter;

/** A process on an Iceberg that loses the keys of deletion vectors. */
public final class VectorsOnEarlierIceberg {
  private VectorsOnEarlierIceberg() {}

  /**
   * Writes a deletion vector as Flink and Spark do, and statistics, which are Puffin files as well,
   * and prints what came of it.
   *
   * @param args the folder, which has a keystore
   */
  public static void main(String[] args) throws Exception {
    System.out.println("Iceberg " + IcebergBuild.version());
    Path folder = Path.of(args[0]);
    TestLake lake =
        new TestLake(Backend.HADOOP, folder, TestKeystore.existing(folder).properties());
    Table table =
        TestLake.createTable(lake.open(Map.of("encryption.statistics", "encrypt")), "t", Map.of());
    DataFile data = TestLake.write(table, 1, 2);
    for (FileFormat named : List.of(FileFormat.PARQUET, FileFormat.PUFFIN)) { // PARQUET: Flink
      write(table, data, named);
    }

    System.out.println("files " + TestLake.files(table).size());
    String statistics = table.location() + "/metadata/1-" + UUID.randomUUID() + ".stats";
    try (PuffinWriter writer = Puffin.write(table.io().newOutputFile(statistics)).build()) {
      writer.add(new Blob("test", List.of(1), 1, 1, ByteBuffer.wrap(new byte[] {1})));
    }

    System.out.println("statistics " + TestLake.magic(TestLake.path(statistics)));
    table.newAppend().appendFile(data).commit();
    System.out.println("rows " + TestLake.ids(table));
  }

  private static void write(Table table, DataFile data, FileFormat named) throws Exception {
    OutputFileFactory files = OutputFileFactory.builderFor(table, 1, 1).format(named).build();
    DVFileWriter writer = new BaseDVFileWriter(files, path -> null);
    writer.delete(data.location(), 0, table.spec(), null);
    try {
      writer.close();
      System.out.println("written " + writer.result().deleteFiles());
    } catch (NotSupportedException e) {
      System.out.println("refused " + e.getMessage());
    }
  }
}
