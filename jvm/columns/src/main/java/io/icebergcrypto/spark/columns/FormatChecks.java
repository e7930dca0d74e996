package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.AnalyzeColumnCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableCommand;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * An extension of Spark SQL ({@code spark.sql.extensions}) that checks, on the driver, what is
 * about to happen to files of one format. Tasks would find the same faults; but by then an
 * overwriting statement has deleted what was there.
 */
public abstract class FormatChecks extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** In which Spark's machine learning keeps what it knows of a column. */
  private static final String ML_ATTRIBUTES = "ml_attr";

  /** Commands of Spark's module for Hive, whose jar may not be there. */
  private static final Set<String> HIVE_WRITES =
      Set.of("InsertIntoHiveTable", "InsertIntoHiveDirCommand");

  /** Its own write comes when the table, with the schema, is in the metastore. */
  private static final String HIVE_CREATE = "CreateHiveTableAsSelectCommand";

  /** Its package differs between versions of Spark. */
  private static final String FILES_OF_STREAM = "FileStreamSink";

  private final String format;
  private final List<String> names;

  /**
   * Checks of one format.
   *
   * @param format its name after USING
   * @param names what the names of its options begin with that concern keys
   */
  protected FormatChecks(String format, List<String> names) {
    this.format = format;
    this.names = names;
  }

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPreCBORule(session -> new TellTasks());
    extensions.injectCheckRule(session -> this::check);
    extensions.injectResolutionRule(session -> new AppendOptionsRule(this));
    return BoxedUnit.UNIT;
  }

  private BoxedUnit check(LogicalPlan plan) {
    plan.foreach(this::checkNode); // one statement can write several tables
    return BoxedUnit.UNIT;
  }

  private BoxedUnit checkNode(LogicalPlan plan) {
    StoredOptions.check(plan);
    if (plan instanceof InsertIntoHadoopFsRelationCommand write
        && isOfHive(write.fileFormat().getClass().getName())) {
      checkHiveWrite("folder " + write.outputPath(), hadoop(write));
    } else if (plan instanceof InsertIntoHadoopFsRelationCommand write
        && isOf(write.fileFormat().getClass())) {
      String target = "folder " + write.outputPath();
      if (write.catalogTable().isDefined()) {
        checkProperties(write.catalogTable().get(), write.options());
      }

      checkNames(target, write.options());
      StructType columns = columns(write);
      Configuration hadoop = hadoop(write);
      checkWrite(write, hadoop, columns);
      checkNotes(target, write.catalogTable().isDefined(), hadoop, columns);
    } else if (plan instanceof CreateDataSourceTableCommand create) {
      checkCreated(create.table(), create.table().schema());
      checkOther(plan);
    } else if (plan instanceof CreateDataSourceTableAsSelectCommand create) {
      checkCreated(create.table(), create.query().schema());
      checkOther(plan);
    } else if (HIVE_CREATE.equals(plan.nodeName())) {
      checkCreatedByHive(plan);
    } else if (plan instanceof LogicalRelation read
        && read.relation() instanceof HadoopFsRelation files
        && isOf(files.fileFormat().getClass())) {
      checkStored(files);
      checkRead(hadoop(files.options()));
    } else if (plan instanceof HiveTableRelation read && isOfHive(read.tableMeta())) {
      checkRead(hadoop(read.tableMeta().storage().properties()));
    } else if (plan instanceof DataSourceV2Relation read
        && read.table() instanceof FileTable files
        && isOf(files.fallbackFileFormat())) {
      checkLate();
      Configuration hadoop = SparkSession.active().sessionState().newHadoopConf();
      read.options().asCaseSensitiveMap().forEach(hadoop::set);
      checkRead(Protections.guarded(hadoop));
    } else if (plan instanceof AnalyzeColumnCommand analyze) {
      checkStatistics(analyze);
    } else if (plan instanceof WriteToMicroBatchDataSourceV1 stream
        && FILES_OF_STREAM.equals(stream.sink().getClass().getSimpleName())) {
      checkStream(stream);
    } else if (HIVE_WRITES.contains(plan.nodeName())) {
      for (Object part : FromScala.parts(plan)) {
        if (part instanceof CatalogTable table) {
          StoredOptions.check(table);
          if (isOfHive(table.storage())) {
            checkHiveWrite(name(table), stricter(hadoopOfHive(table), session()));
          }
        } else if (part instanceof CatalogStorageFormat storage && isOfHive(storage)) {
          checkHiveWrite("a directory", hadoop(storage.properties()));
        }
      }
    } else {
      checkOther(plan);
    }

    return BoxedUnit.UNIT;
  }

  /** Whether it is this format. */
  protected abstract boolean isOf(Class<?> fileFormat);

  /**
   * The columns that have keys.
   *
   * @param hadoop with the options of a write or a table
   * @param columns of the files
   * @return their names, or those of the columns that they are in
   */
  protected abstract Set<String> keyed(Configuration hadoop, StructType columns);

  /**
   * Whether columns with keys are read.
   *
   * @param hadoop with the options of a table
   */
  protected abstract boolean opensKeyed(Configuration hadoop);

  /**
   * Settings of a write into a table, of which the session's own count where they are stricter.
   *
   * @param ofTable with the options that the table has
   * @return the table's if none is laxer
   */
  protected abstract Configuration stricter(Configuration ofTable, Configuration session);

  /** Whether files show their schema to readers that may not read each of their columns. */
  protected boolean showsSchema(Configuration hadoop) {
    return false;
  }

  /**
   * Checks a write before it begins.
   *
   * @param write where the files will be, and in which partitions
   * @param hadoop with the options of the write
   * @param columns those of the files, without those that the table is partitioned by
   */
  protected abstract void checkWrite(
      InsertIntoHadoopFsRelationCommand write, Configuration hadoop, StructType columns);

  /**
   * Checks a session's settings before a stream writes files with them, whose format does not show.
   *
   * @param target what is written, for errors
   * @param hadoop without options
   */
  protected abstract void checkSession(String target, Configuration hadoop);

  /**
   * Checks a read before it begins.
   *
   * @param hadoop with the options of the read
   */
  protected void checkRead(Configuration hadoop) {}

  /** Checks what another program has stored of files that are about to be read. */
  protected void checkStored(HadoopFsRelation files) {}

  /**
   * Whether it is this format as Hive's own code writes it: in Hive's tables, and in Spark's with
   * spark.sql.orc.impl=hive.
   *
   * @param writer the name of a class: a file format of Spark's, or a SerDe
   */
  private boolean isOfHive(String writer) {
    return writer.contains(".hive.") && writer.toLowerCase(Locale.ROOT).contains(format);
  }

  /**
   * Checks a write by Hive's own writer.
   *
   * @param target what is written, for errors
   * @param hadoop with the options and properties of the write or of the table
   */
  protected abstract void checkHiveWrite(String target, Configuration hadoop);

  private boolean isOfHive(CatalogStorageFormat storage) {
    return storage.serde().isDefined() && isOfHive(storage.serde().get());
  }

  /** Checks what is written in another way, such as by another program's commands. */
  protected void checkOther(LogicalPlan plan) {}

  private void checkLate() {
    LateSettings.check(SparkSession.active(), this::concernsKeys);
  }

  private Configuration session() {
    checkLate();
    return Protections.guarded(SparkSession.active().sessionState().newHadoopConf());
  }

  private Configuration hadoop(Map<String, String> options) {
    checkLate();
    return Protections.guarded(
        SparkSession.active().sessionState().newHadoopConfWithOptions(options));
  }

  private Configuration hadoop(InsertIntoHadoopFsRelationCommand write) {
    Configuration hadoop = hadoop(write.options());
    if (write.catalogTable().isEmpty()) {
      return hadoop;
    }

    Configuration stricter = stricter(hadoop, session());
    SessionCatalog catalog = SparkSession.active().sessionState().catalog();
    boolean isNew = // then the options are the writer's own
        stricter != hadoop && !catalog.tableExists(write.catalogTable().get().identifier());
    return isNew ? hadoop : stricter;
  }

  /** With a table's properties, which Spark gives to its own writer. */
  private Configuration hadoopOfHive(CatalogTable table) {
    Configuration hadoop = hadoop(table.storage().properties());
    FromScala.map(table.properties()).forEach(hadoop::set);
    return hadoop;
  }

  /** A table, for errors. */
  protected static String name(CatalogTable table) {
    return "table " + table.identifier().unquotedString();
  }

  private void checkCreated(CatalogTable table, StructType columns) {
    if (isOf(table)) {
      StoredOptions.check(table);
      checkProperties(table, table.storage().properties());
      checkNames(name(table), table.storage().properties());
      checkNotes(name(table), true, hadoop(table.storage().properties()), columns);
    }
  }

  private void checkCreatedByHive(LogicalPlan create) {
    List<Object> parts = FromScala.parts(create);
    for (Object part : parts) {
      if (part instanceof CatalogTable table && isOfHive(table)) {
        parts.stream()
            .filter(LogicalPlan.class::isInstance)
            .forEach(
                query ->
                    checkNotes(
                        name(table), true, hadoopOfHive(table), ((LogicalPlan) query).schema()));
      }
    }
  }

  /** A table of Spark's own; null if it does not exist. */
  static CatalogTable tableOrNull(TableIdentifier name) {
    SessionCatalog catalog = SparkSession.active().sessionState().catalog();
    try {
      return catalog.isTempView(name) || !catalog.tableExists(name)
          ? null
          : catalog.getTableMetadata(name);
    } catch (Exception e) { // of other classes in each version of Spark, and checked by Java
      return null; // then the statement fails
    }
  }

  boolean isOf(CatalogTable table) {
    return table.provider().isDefined() && table.provider().get().equalsIgnoreCase(format);
  }

  /** Whether it is a table of Hive's with such files. */
  boolean isOfHive(CatalogTable table) {
    return table.storage().serde().isDefined()
        && table.storage().serde().get().toLowerCase(Locale.ROOT).contains(format);
  }

  /** Whether the name of an option or setting is about keys, ignoring case. */
  public final boolean concernsKeys(String option) {
    String name = LateSettings.withoutPrefix(option);
    return names.stream().anyMatch(name.toLowerCase(Locale.ROOT)::startsWith);
  }

  /** Spark hands options on as they are written, and formats look for names in small letters. */
  private void checkNames(String target, Map<String, String> options) {
    for (String name : FromScala.map(options).keySet()) {
      String right = LateSettings.withoutPrefix(name).toLowerCase(Locale.ROOT);
      if (concernsKeys(name) && !name.equals(right)) {
        throw new InvalidConfigurationException(
            String.format(
                "Option %s of %s would do nothing: %s",
                name,
                target,
                LateSettings.isBelow(name)
                    ? "the prefix is only for Spark's start"
                    : "case matters"),
            String.format("Write %s. Nothing was written.", right));
      }
    }
  }

  /** Spark gives a stream's files neither its options nor those of its table. */
  private void checkStream(WriteToMicroBatchDataSourceV1 stream) {
    Configuration session = session();
    checkSession("the files of a stream", session);
    Set<String> dropped = new TreeSet<>();
    dropped.addAll(unlike(stream.writeOptions(), session));
    checkNotes(
        "the files of a stream",
        stream.catalogTable().isDefined(),
        session,
        stream.query().schema());
    if (stream.catalogTable().isDefined()) {
      CatalogTable table = stream.catalogTable().get();
      dropped.addAll(unlike(table.storage().properties(), session));
      checkProperties(table, table.storage().properties());
    }

    if (!dropped.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Spark drops the options of a stream into files, and of its table: %s",
              String.join(", ", dropped)),
          "Set them for the session, or write each batch with foreachBatch, whose writes have"
              + " options. Nothing was written.");
    }
  }

  private List<String> unlike(Map<String, String> options, Configuration session) {
    return LateSettings.unlike(
        FromScala.map(options),
        this::concernsKeys,
        name -> session.get(name.toLowerCase(Locale.ROOT), ""));
  }

  private void checkNotes(
      String target, boolean inMetastore, Configuration hadoop, StructType columns) {
    if (Stream.of(columns.fields()).anyMatch(FormatChecks::isNoted)
        && (showsSchema(hadoop) || inMetastore && !keyed(hadoop, columns).isEmpty())) {
      checkNotes(target, columns);
    }
  }

  private static boolean isNoted(StructField field) {
    return field.metadata().contains(ML_ATTRIBUTES)
        || field
            .dataType()
            .existsRecursively(
                type ->
                    type instanceof StructType struct
                        && Stream.of(struct.fields()).anyMatch(FormatChecks::isNoted));
  }

  /**
   * Checks columns whose schema will be readable without their keys: what Spark's machine learning
   * notes of a column has its values.
   *
   * @param target what is written, for errors
   * @throws NotSupportedException when a column, or one in it, has such metadata
   */
  public static void checkNotes(String target, StructType columns) {
    for (StructField field : columns.fields()) {
      if (isNoted(field)) {
        throw new NotSupportedException(
            String.format(
                "Column '%s' of %s has metadata %s, which can have values of a column with a key:"
                    + " it would be in the schema, without that key",
                field.name(), target, ML_ATTRIBUTES),
            "Take it off before the write: df.withMetadata(\"<column>\", {}), or, of a column in a"
                + " struct, list or map, by a cast of the whole to its type. Nothing was written.");
      }
    }
  }

  /** Its result, with the smallest and largest values, is in the metastore, in plaintext. */
  private void checkStatistics(AnalyzeColumnCommand analyze) {
    CatalogTable table = tableOrNull(analyze.tableIdent());
    if (table == null || !isOf(table) && !isOfHive(table)) {
      return;
    }

    StoredOptions.check(table);
    Configuration hadoop =
        isOfHive(table) ? hadoopOfHive(table) : hadoop(table.storage().properties());

    List<String> named = new ArrayList<>();
    if (!analyze.allColumns()) {
      analyze.columnNames().get().iterator().foreach(named::add);
    }

    List<String> columns =
        Stream.of(table.schema().fieldNames())
            .filter(
                column -> analyze.allColumns() || named.stream().anyMatch(column::equalsIgnoreCase))
            .toList();
    Set<String> found = new TreeSet<>();
    Set<String> keyed = keyed(hadoop, table.dataSchema());
    columns.stream().filter(keyed::contains).forEach(found::add);
    if (found.isEmpty() && opensKeyed(hadoop)) {
      found.addAll(KeysInFiles.of(analyze.tableIdent(), columns, hadoop));
    }

    if (!found.isEmpty()) {
      throw new NotSupportedException(
          String.format(
              "Statistics of columns with keys (%s) of table %s would be plaintext in the"
                  + " metastore, with their smallest and largest values",
              String.join(", ", found), table.identifier().unquotedString()),
          "Name columns without keys, or leave FOR COLUMNS out: row counts and sizes show no"
              + " values.");
    }
  }

  /** Spark gives a table's options to the format, and nothing of its TBLPROPERTIES. */
  private void checkProperties(CatalogTable table, Map<String, String> options) {
    FromScala.map(table.properties())
        .forEach(
            (name, value) -> {
              if (concernsKeys(name) && !options.get(name).contains(value)) {
                throw new InvalidConfigurationException(
                    String.format(
                        "TBLPROPERTIES of table %s has %s, which would do nothing there",
                        table.identifier().unquotedString(), name),
                    String.format(
                        "Write OPTIONS (...) in CREATE TABLE ... USING %s: only these reach the"
                            + " files.",
                        format));
              }
            });
  }

  /** Without those that the table is partitioned by, ignoring the case in the statement. */
  private static StructType columns(InsertIntoHadoopFsRelationCommand write) {
    Set<ExprId> partitions = new HashSet<>();
    write
        .partitionColumns()
        .iterator()
        .foreach(column -> partitions.add(column.exprId())); // Scala 2.12 and 2.13 alike
    List<StructField> fields = new ArrayList<>();
    write
        .outputColumns()
        .iterator()
        .foreach(column -> !partitions.contains(column.exprId()) && fields.add(field(column)));
    return new StructType(fields.toArray(StructField[]::new));
  }

  private static StructField field(Attribute column) {
    return new StructField(column.name(), column.dataType(), column.nullable(), column.metadata());
  }
}
