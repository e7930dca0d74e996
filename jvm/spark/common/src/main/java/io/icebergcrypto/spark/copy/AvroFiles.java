package io.icebergcrypto.spark.copy;

import java.io.IOException;
import java.io.InputStream;
import java.util.function.Consumer;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileConstants;
import org.apache.avro.file.DataFileStream;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * Manifests and manifest lists as Avro files, record by record, with the schema that each file has:
 * what is not changed stays as it is, also what this version of Iceberg does not know. Avro is
 * Spark's own.
 */
final class AvroFiles {
  private AvroFiles() {}

  /** Gives each record. */
  static void read(InputFile file, Consumer<GenericRecord> each) throws IOException {
    try (DataFileStream<GenericRecord> records = open(file)) {
      records.forEach(each);
    }
  }

  /**
   * Writes a file again: same schema, metadata and codec.
   *
   * @param change changes each record
   * @return the length of the new file as it is stored
   */
  static long rewrite(InputFile from, OutputFile to, Consumer<GenericRecord> change)
      throws IOException {
    try (DataFileStream<GenericRecord> records = open(from)) {
      String codec = records.getMetaString(DataFileConstants.CODEC);
      CodecFactory factory =
          CodecFactory.fromString(codec == null ? DataFileConstants.NULL_CODEC : codec);
      PositionOutputStream stored = to.create();
      try (stored; // where Avro fails, it does not close it
          DataFileWriter<GenericRecord> writer =
              new DataFileWriter<>(new GenericDatumWriter<>(records.getSchema(), data()))) {
        writer.setCodec(factory);
        for (String name : records.getMetaKeys()) {
          if (!DataFileWriter.isReservedMeta(name)) {
            writer.setMeta(name, records.getMeta(name));
          }
        }

        writer.create(records.getSchema(), stored);
        while (records.hasNext()) {
          GenericRecord record = records.next();
          change.accept(record);
          writer.append(record);
        }
      }

      return stored.storedLength();
    }
  }

  private static DataFileStream<GenericRecord> open(InputFile file) throws IOException {
    InputStream stored = file.newStream();
    try {
      return new DataFileStream<>(stored, new GenericDatumReader<>(null, null, data()));
    } catch (IOException | RuntimeException e) { // it is not an Avro file
      try (stored) {
        throw e;
      }
    }
  }

  /** Without conversions: values as they are stored. */
  private static GenericData data() {
    return new GenericData();
  }
}
