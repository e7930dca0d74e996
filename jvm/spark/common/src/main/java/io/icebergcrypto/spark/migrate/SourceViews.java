package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;

/** A table as it was at a time, regardless of later commits. */
interface SourceViews {
  /** The table with one of its schemas as the current one. */
  BaseTable of(TableMetadata metadata, int schemaId);

  /** Those of a plaintext table. */
  static SourceViews ofPlaintext(BaseTable table) {
    return (metadata, schemaId) ->
        new BaseTable(
            new MetadataInMemory(table.operations(), EncryptedForm.withSchema(metadata, schemaId)),
            table.name());
  }
}
