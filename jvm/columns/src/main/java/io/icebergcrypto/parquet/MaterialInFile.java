package io.icebergcrypto.parquet;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.format.Json;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.parquet.crypto.keytools.HadoopFSKeyMaterialStore;

/**
 * What key metadata of Parquet's key tools says without any key: which master key a key is wrapped
 * by. It is in the file, or in one beside it. Not authenticated.
 */
final class MaterialInFile {
  private static final int MOST_BYTES = 16 << 20;

  private final FileIO io;
  private final String location;
  private JsonObject beside;

  MaterialInFile(FileIO io, String location) {
    this.io = io;
    this.location = location;
  }

  /** The master key's id; null when it cannot be told: another program's metadata, say. */
  String masterKey(byte[] keyMetadata) {
    try {
      JsonObject metadata = Json.object(new String(keyMetadata, StandardCharsets.UTF_8));
      JsonElement id =
          metadata.get("internalStorage").getAsBoolean()
              ? metadata.get("masterKeyID")
              : Json.object(beside().get(metadata.get("keyReference").getAsString()).getAsString())
                  .get("masterKeyID");
      return ParquetKmsClient.keyId(id.getAsString());
    } catch (RuntimeException | IOException e) {
      return null;
    }
  }

  private JsonObject beside() throws IOException {
    if (beside == null) {
      int name = location.lastIndexOf('/') + 1;
      InputFile file =
          io.newInputFile(
              location.substring(0, name)
                  + HadoopFSKeyMaterialStore.KEY_MATERIAL_FILE_PREFIX
                  + location.substring(name)
                  + HadoopFSKeyMaterialStore.KEY_MATERIAL_FILE_SUFFFIX);
      try (InputStream in = file.newStream()) {
        this.beside = Json.object(new String(in.readNBytes(MOST_BYTES), StandardCharsets.UTF_8));
      }
    }

    return beside;
  }
}
