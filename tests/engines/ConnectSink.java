import java.io.Closeable;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.connect.IcebergSinkConfig;
import org.apache.iceberg.connect.data.IcebergWriterResult;
import org.apache.iceberg.connect.data.SinkWriter;
import org.apache.iceberg.connect.events.AvroUtil;
import org.apache.iceberg.connect.events.DataWritten;
import org.apache.iceberg.connect.events.Event;
import org.apache.iceberg.types.Types;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * What Kafka Connect's sink does, without Kafka: a worker writes records and tells the coordinator
 * by an event on the control topic, which commits. Arguments: the sink's properties, {@code
 * name=value}. Prints the sizes, and whether the event has data keys and values in plaintext.
 */
public final class ConnectSink {
  private static final TableIdentifier TABLE = TableIdentifier.of("db", "t");

  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    for (String arg : args) {
      properties.put(arg.substring(0, arg.indexOf('=')), arg.substring(arg.indexOf('=') + 1));
    }

    IcebergSinkConfig config = new IcebergSinkConfig(properties);
    Catalog catalog =
        CatalogUtil.buildIcebergCatalog(
            config.catalogName(), config.catalogProps(), new Configuration());
    try (Closeable closing = (Closeable) catalog) {
      Schema schema =
          new Schema(
              Types.NestedField.required(1, "id", Types.LongType.get()),
              Types.NestedField.optional(2, "note", Types.StringType.get()));
      catalog.buildTable(TABLE, schema).withProperty("encryption.key-id", "sales").create();
      List<byte[]> controlTopic = written(catalog, config);

      Table table = catalog.loadTable(TABLE); // the coordinator's
      AppendFiles append = table.newAppend();
      for (byte[] message : controlTopic) {
        DataWritten payload = (DataWritten) AvroUtil.decode(message).payload();
        for (DataFile file : payload.dataFiles()) {
          append.appendFile(file);
          System.out.println("keys in the event: " + contains(message, file.keyMetadata()));
          System.out.println("values in the event: " + hasValues(message));
        }
      }

      append.commit();
      System.out.println("rows: " + table.currentSnapshot().summary().get("total-records"));
      table.updateProperties().set("write.metadata.metrics.default", "counts").commit();
      boolean hasValues = written(catalog, config).stream().anyMatch(ConnectSink::hasValues);
      System.out.println("values in the event with counts: " + hasValues);
    }
  }

  /** A worker's events. */
  private static List<byte[]> written(Catalog catalog, IcebergSinkConfig config) {
    SinkWriter worker = new SinkWriter(catalog, config);
    List<SinkRecord> records = new ArrayList<>();
    for (long id = 1; id <= 5; id++) {
      Map<String, Object> value = Map.of("id", id, "note", "note " + id);
      records.add(new SinkRecord("events", 0, null, null, null, value, id));
    }

    worker.save(records);
    List<byte[]> controlTopic = new ArrayList<>();
    for (IcebergWriterResult written : worker.completeWrite().writerResults()) {
      DataWritten payload =
          new DataWritten(
              written.partitionStruct(),
              UUID.randomUUID(),
              written.tableReference(),
              written.dataFiles(),
              written.deleteFiles());
      controlTopic.add(AvroUtil.encode(new Event(config.connectGroupId(), payload)));
    }

    return controlTopic;
  }

  private static boolean hasValues(byte[] message) {
    return contains(message, ByteBuffer.wrap("note 5".getBytes(StandardCharsets.UTF_8)));
  }

  private static boolean contains(byte[] message, ByteBuffer bytes) {
    byte[] part = new byte[bytes.remaining()];
    bytes.duplicate().get(part);
    String all = new String(message, StandardCharsets.ISO_8859_1);
    return all.contains(new String(part, StandardCharsets.ISO_8859_1));
  }
}
