package io.icebergcrypto.spark.copy;

import io.icebergcrypto.kms.call.KeyCache;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A file of the copy that was rewritten. Its key metadata travels as in a table's metadata:
 * encrypted with a KEK.
 *
 * @param source the path of the file in the table
 * @param staged where it was written
 * @param target where it is to be
 * @param length its length as it is stored
 * @param key its key metadata, encrypted
 */
record StagedFile(String source, String staged, String target, long length, EncryptedKey key)
    implements Serializable {
  static final StructType SCHEMA =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("staged", DataTypes.StringType, false)
          .add("target", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false)
          .add("key_id", DataTypes.StringType, false)
          .add("encrypted_key_metadata", DataTypes.BinaryType, false)
          .add("encrypted_by_id", DataTypes.StringType, false);

  Row toRow() {
    byte[] bytes = KeyCache.copyOf(key.encryptedKeyMetadata());
    return RowFactory.create(
        source, staged, target, length, key.keyId(), bytes, key.encryptedById());
  }

  static StagedFile of(Row row) {
    return new StagedFile(
        row.getString(0),
        row.getString(1),
        row.getString(2),
        row.getLong(3),
        new BaseEncryptedKey(
            row.getString(4), ByteBuffer.wrap(row.<byte[]>getAs(5)), row.getString(6), Map.of()));
  }
}
