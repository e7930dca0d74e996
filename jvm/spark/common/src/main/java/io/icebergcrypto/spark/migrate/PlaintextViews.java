package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.EncryptedForm;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;

/** Those of a plaintext table. */
record PlaintextViews(BaseTable table) implements SourceViews {
  @Override
  public BaseTable of(TableMetadata metadata, int schemaId) {
    return new BaseTable(
        new MetadataInMemory(table.operations(), EncryptedForm.withSchema(metadata, schemaId)),
        table.name());
  }
}
