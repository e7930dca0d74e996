package io.icebergcrypto.metadata.forwarding;

import org.apache.iceberg.io.InputFile;

/** A file that forwards what it does not override; a decorator implements how it is read. */
public interface ForwardingInputFile extends InputFile {
  /** The file that is decorated. */
  InputFile under();

  @Override
  default long getLength() {
    return under().getLength();
  }

  @Override
  default String location() {
    return under().location();
  }

  @Override
  default boolean exists() {
    return under().exists();
  }
}
