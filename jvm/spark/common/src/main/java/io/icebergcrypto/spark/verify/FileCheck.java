package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import java.nio.ByteBuffer;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.InputFile;

/** Checks one file by its first bytes. */
final class FileCheck {
  FileCheck(Depth depth) {}

  CheckedFile check(
      FileKind kind, String format, InputFile stored, long expectedLength, ByteBuffer keyMetadata) {
    try {
      long length = expectedLength < 0 ? stored.getLength() : expectedLength;
      FileMagic magic = FileInspector.magic(stored);
      String problem = kind.problem(format, magic);
      return new CheckedFile(
          magic.name(), magic.encrypted(), length, FileMagic.HEAD_LENGTH, problem, false);
    } catch (NotFoundException e) {
      return new CheckedFile(null, false, expectedLength, 0, "it does not exist", false);
    } catch (RuntimeException e) {
      return FailedCheck.of(expectedLength, e);
    }
  }
}
