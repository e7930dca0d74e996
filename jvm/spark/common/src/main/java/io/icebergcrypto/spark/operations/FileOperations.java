package io.icebergcrypto.spark.operations;

import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.orc.OrcDoctor;
import io.icebergcrypto.parquet.ParquetDoctor;
import io.icebergcrypto.spark.columns.LateSettings;
import io.icebergcrypto.spark.inspect.FileLook;
import io.icebergcrypto.spark.orc.OrcChecks;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.io.ResolvingFileIO;

/** Single files, and the keys of columns of Spark's own Parquet and ORC files. */
final class FileOperations {
  static final List<Operation> ALL =
      List.of(
          Operation.call(
              "inspect_file", "path STRING NOT NULL, pages BOOLEAN", FileOperations::inspect),
          Operation.call(
                  "examine_parquet",
                  "",
                  call ->
                      Answer.value(
                          ParquetDoctor.examine(settings(call, SessionProperties::isOfParquet))))
              .onDriver(),
          Operation.call(
                  "examine_orc",
                  "",
                  call ->
                      Answer.value(
                          OrcDoctor.examine(settings(call, new OrcChecks()::concernsKeys))))
              .onDriver());

  private FileOperations() {}

  private static Configuration hadoop(Call call) {
    return call.spark().sessionState().newHadoopConf();
  }

  /** A session's settings, of which none came too late. */
  private static Configuration settings(Call call, Predicate<String> concernsKeys) {
    LateSettings.check(call.spark(), concernsKeys);
    return hadoop(call);
  }

  /**
   * Recognizes a file from its bytes, at any location that Iceberg's ResolvingFileIO reads; with
   * the session's KMS also the columns, and their data, of a Parquet or ORC file whose columns have
   * keys.
   */
  private static Answer inspect(Call call) {
    try (ResolvingFileIO io = Storage.any(hadoop(call))) {
      return Answer.value(FileLook.at(call.text("path"), io, io.getConf(), call.flag("pages")));
    }
  }
}
