package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkTableUtil;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * Proves that the files a table reaches are encrypted: a Spark job reads the first bytes of each.
 * The driver holds only the paths of manifest lists; manifests are read on the executors.
 */
public final class TableVerifier {
  private static final StructType FILE =
      new StructType()
          .add("kind", DataTypes.StringType, false)
          .add("path", DataTypes.StringType, false)
          .add("format", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false);
  private static final StructType CHECKED =
      FILE.add("magic", DataTypes.StringType)
          .add("encrypted", DataTypes.BooleanType, false)
          .add("problem", DataTypes.StringType);

  private final SparkSession spark;
  private final String name;
  private final BaseTable table;
  private final boolean allSnapshots;

  private TableVerifier(SparkSession spark, String name, BaseTable table, boolean allSnapshots) {
    this.spark = spark;
    this.name = name;
    this.table = table;
    this.allSnapshots = allSnapshots;
  }

  /**
   * Checks every file that a table reaches.
   *
   * @param tableName the table as in SQL: {@code lake.db.t}
   * @param allSnapshots false: what the current snapshot reaches
   * @return the result, which keeps its DataFrame of files until it is closed
   * @throws NotSupportedException when it is not an Iceberg table
   */
  public static VerifyResult verify(SparkSession spark, String tableName, boolean allSnapshots) {
    Table table;
    try {
      table = Spark3Util.loadIcebergTable(spark, tableName);
    } catch (NoSuchTableException | ParseException | ClassCastException e) {
      throw new NotSupportedException(
          String.format("There is no Iceberg table %s", tableName),
          "Give the name as in SQL, with its catalog: lake.db.t.",
          e);
    }

    if (!(table instanceof BaseTable base)) {
      throw new NotSupportedException(
          String.format("%s is not a table with files of its own", tableName),
          "Give the table, without the name of a metadata table behind it.");
    }

    table.refresh();
    BaseTable readable = EncryptedTable.forAudit(base);
    return new TableVerifier(spark, tableName, readable, allSnapshots).verify();
  }

  private VerifyResult verify() {
    long start = System.nanoTime();
    Tally tally = new Tally();
    String keyId = table.properties().get(TableProperties.ENCRYPTION_TABLE_KEY);
    if (keyId == null && table.operations().current().encryptionKeys().isEmpty()) {
      tally.add(
          new VerifyResult.Problem(
              "table",
              name,
              "it has no " + TableProperties.ENCRYPTION_TABLE_KEY + ": it is not encrypted",
              "Make an encrypted copy: CREATE TABLE <new> USING iceberg TBLPROPERTIES"
                  + " ('encryption.key-id'='<master key id>') AS SELECT * FROM "
                  + name
                  + "."));
    }

    List<Dataset<Row>> levels = new ArrayList<>();
    checkLevel("manifest lists", this::namedByMetadata, levels, tally);
    checkLevel("manifests", this::manifests, levels, tally);
    checkLevel("data and delete files", this::contentFiles, levels, tally);
    if (levels.isEmpty()) {
      levels.add(spark.createDataFrame(List.of(), CHECKED));
    }

    double seconds = (System.nanoTime() - start) / 1e9;
    return new VerifyResult(describe(keyId), levels, tally, seconds);
  }

  private VerifyResult.Subject describe(String keyId) {
    int snapshots = 0;
    for (Snapshot ignored : table.snapshots()) {
      snapshots++;
    }

    return new VerifyResult.Subject(
        name,
        keyId,
        table.operations().current().formatVersion(),
        EncryptedTable.metadataAuthentication(table),
        allSnapshots,
        allSnapshots ? snapshots : Math.min(snapshots, 1));
  }

  /**
   * Adds a level of the tree, or the problem that it cannot be read: the level above may be forged.
   *
   * @throws IcebergCryptoException when the check itself failed
   */
  private void checkLevel(
      String what, Supplier<Dataset<Row>> level, List<Dataset<Row>> levels, Tally tally) {
    try {
      Dataset<Row> files = check(distinct(level.get())).persist(StorageLevel.MEMORY_AND_DISK());
      tally.merge(Tally.of(files));
      levels.add(files);
    } catch (Exception e) { // Spark throws checked exceptions that it does not declare
      Throwable finding = FailedCheck.finding(e);
      if (finding == null) {
        throw FailedCheck.error(name, what, e);
      }

      tally.add(
          new VerifyResult.Problem(
              "table",
              name,
              "its " + what + " cannot be listed: " + finding.getMessage(),
              "A manifest list or a manifest is damaged, forged or missing, or its key is not the"
                  + " one that encrypted it."));
    }
  }

  /**
   * Each file once, in as many parts as the cluster has cores: snapshots share manifests and files.
   */
  private Dataset<Row> distinct(Dataset<Row> files) {
    int parts = spark.sparkContext().defaultParallelism();
    return files.repartition(parts, functions.col("path")).dropDuplicates("path");
  }

  private Dataset<Row> namedByMetadata() {
    List<Row> rows =
        ReachableFile.namedByMetadata(table, allSnapshots).stream()
            .map(f -> RowFactory.create(f.kind().label(), f.path(), f.format(), f.length()))
            .toList();
    return spark.createDataFrame(rows, FILE);
  }

  private Dataset<Row> manifests() {
    return metadataTable(
            allSnapshots ? MetadataTableType.ALL_MANIFESTS : MetadataTableType.MANIFESTS)
        .select(
            functions.lit(FileKind.MANIFEST.label()).as("kind"),
            functions.col("path"),
            functions.lit("avro").as("format"),
            functions.col("length"));
  }

  private Dataset<Row> contentFiles() {
    return metadataTable(allSnapshots ? MetadataTableType.ALL_FILES : MetadataTableType.FILES)
        .selectExpr("content", "file_path", "file_format", "file_size_in_bytes")
        .mapPartitions(
            (MapPartitionsFunction<Row, Row>)
                rows -> new MappedIterator<>(rows, TableVerifier::contentFile),
            Encoders.row(FILE));
  }

  private static Row contentFile(Row row) {
    String format = row.getString(2);
    return RowFactory.create(
        FileKind.ofContent(row.getInt(0), format).label(),
        row.getString(1),
        format,
        row.getLong(3));
  }

  private Dataset<Row> metadataTable(MetadataTableType type) {
    return SparkTableUtil.loadMetadataTable(spark, table, type);
  }

  private Dataset<Row> check(Dataset<Row> files) {
    Broadcast<Table> shared =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(SerializableTable.copyOf(table));
    return files.mapPartitions(
        (MapPartitionsFunction<Row, Row>)
            rows -> new MappedIterator<>(rows, row -> check(row, shared.value().io())),
        Encoders.row(CHECKED));
  }

  private static Row check(Row file, FileIO io) {
    FileKind kind = FileKind.ofLabel(file.getString(0));
    String magicName = null;
    String problem;
    boolean encrypted = false;
    long length = file.getLong(3);
    try {
      InputFile stored = io.newInputFile(file.getString(1));
      length = length < 0 ? stored.getLength() : length;
      FileMagic magic = FileInspector.magic(stored);
      magicName = magic.name();
      encrypted = magic.encrypted();
      problem = kind.problem(file.getString(2), magic);
    } catch (NotFoundException e) {
      problem = "it does not exist";
    } catch (IcebergCryptoException e) {
      if (FailedCheck.finding(e) == null) {
        throw e;
      }

      problem = e.problem();
    }

    return RowFactory.create(
        file.getString(0),
        file.getString(1),
        file.getString(2),
        length,
        magicName,
        encrypted,
        problem);
  }

  /** Maps rows one by one, holding none. */
  private record MappedIterator<T, R>(Iterator<T> from, Function<T, R> map) implements Iterator<R> {
    @Override
    public boolean hasNext() {
      return from.hasNext();
    }

    @Override
    public R next() {
      return map.apply(from.next());
    }
  }
}
