package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.MetadataFiles;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.format.Sha256;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Files as rows, which is what is shuffled and cached: paths and what was found, no key and no key
 * metadata. A row of {@link #CHECKED} is either what was found about a file, or a file that was
 * found below it and is yet to be checked.
 */
final class FileRow {
  /** The column of what {@link #entry} says. */
  static final String ENTRY = "entry";

  /** A file that is reached, and from where. */
  static final StructType REACHED =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("older", DataTypes.BooleanType, false) // only expired snapshots reach it
          .add("list", DataTypes.IntegerType, false) // the place of the manifest list above it
          .add("manifest", DataTypes.StringType) // the manifest above it
          .add("kind", DataTypes.StringType, false)
          .add("format", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false)
          .add("key_id", DataTypes.StringType) // where the table's metadata has its key
          .add(ENTRY, DataTypes.StringType); // of recorded files, see entry()

  /** Files by nothing but their paths. */
  static final StructType PATHS = new StructType().add("path", DataTypes.StringType, false);

  /** A file that was checked, or one that was found below it. */
  static final StructType CHECKED =
      REACHED
          .add("below", DataTypes.BooleanType, false)
          .add("magic", DataTypes.StringType)
          .add("encrypted", DataTypes.BooleanType)
          .add("problem", DataTypes.StringType)
          .add("code", DataTypes.StringType);

  private FileRow() {}

  static Row of(ReachableFile file, int list) {
    return RowFactory.create(
        file.path(),
        file.older(),
        list,
        null,
        file.kind().label(),
        file.format(),
        file.length(),
        file.keyId(),
        null);
  }

  /** What was found about a metadata file, by reading it. */
  static Row of(MetadataFiles.Version version) {
    FileMagic magic = version.length() < 0 ? null : FileMagic.JSON;
    FileProblem problem =
        version.failure() == null
            ? version.problem()
            : FailedCheck.problemOfWhatIsThere("it cannot be read: ", version.failure());
    ReachableFile file =
        new ReachableFile(FileKind.METADATA_FILE, version.path(), "json", -1L, null, false);
    return checked(
        of(file, -1),
        new FileResult(magic, version.length(), Math.max(version.length(), 0), problem));
  }

  /**
   * A file found below another.
   *
   * @param entry what {@link #entry} says of it; null: nothing is recorded
   */
  static Row below(
      Row above,
      FileKind kind,
      String path,
      String format,
      long length,
      String manifest,
      String entry) {
    return RowFactory.create(
        path,
        isOlder(above),
        list(above),
        manifest,
        kind.label(),
        format,
        length,
        null,
        entry,
        true,
        null,
        null,
        null,
        null);
  }

  /**
   * The hash of all by which a file is checked: what its manifest says, and what the catalog
   * accepts. An outcome counts for a file only as long as these are the same. It gives away no key,
   * as key metadata has 128 random bits or more.
   *
   * @param keyMetadata null when the manifest has none
   */
  static String entry(
      FileKind kind, String format, long length, ByteBuffer keyMetadata, boolean anyLength) {
    byte[] key = keyMetadata == null ? null : ByteBuffers.toByteArray(keyMetadata);
    List<Object> said = new ArrayList<>(List.of(kind.label(), format, length, anyLength));
    said.add(key == null ? null : HexFormat.of().formatHex(key));
    return Sha256.hex(Json.of(said).getBytes(StandardCharsets.UTF_8));
  }

  /** What was found about a file of {@link #REACHED}, or of more columns. */
  static Row checked(Row file, FileResult found) {
    List<Object> values = new ArrayList<>();
    for (int column = 0; column < REACHED.size(); column++) {
      values.add(file.get(column));
    }

    values.set(REACHED.fieldIndex("length"), found.length());
    values.add(false);
    values.add(found.magic() == null ? null : found.magic().name());
    values.add(found.encrypted());
    values.add(found.words());
    values.add(found.code() == null ? null : found.code().label());
    return RowFactory.create(values.toArray());
  }

  static String path(Row row) {
    return row.getString(0);
  }

  static boolean isOlder(Row row) {
    return row.getBoolean(1);
  }

  static int list(Row row) {
    return row.getInt(2);
  }

  static String manifest(Row row) {
    return row.getString(3);
  }

  static FileKind kind(Row row) {
    return FileKind.ofLabel(row.getString(4));
  }

  static String format(Row row) {
    return row.getString(5);
  }

  static long length(Row row) {
    return row.getLong(6);
  }

  static String keyId(Row row) {
    return row.getString(7);
  }

  /** Whether a row of {@link #CHECKED} is a file that is yet to be checked. */
  static boolean isBelow(Row row) {
    return row.getBoolean(REACHED.size());
  }

  /** The part of its manifest or list that it is in; one part is all, unless it was divided. */
  static long part(Row row) {
    int column = REACHED.size();
    return row.size() > column ? row.getLong(column) : 0;
  }
}
