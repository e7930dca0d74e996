package io.icebergcrypto.metadata.forwarding;

import java.util.Map;
import org.apache.iceberg.io.FileIO;

/**
 * A FileIO that forwards what it does not override. It does not forward how files are opened:
 * Iceberg's methods that take a data file or a manifest call those that take a path, which a
 * decorator implements.
 */
public interface ForwardingFileIO extends FileIO {
  /** The FileIO that is decorated. */
  FileIO under();

  @Override
  default void deleteFile(String path) {
    under().deleteFile(path);
  }

  @Override
  default Map<String, String> properties() {
    return under().properties();
  }

  @Override
  default void close() {
    under().close();
  }
}
