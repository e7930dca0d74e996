package io.icebergcrypto.testing;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files, but for their permissions: without its native library Hadoop starts a
 * process, chmod, for each file and folder that it makes, which takes a third of a test's time.
 */
public final class NoChmodFileSystem extends LocalFileSystem {
  /** Made by Hadoop. */
  public NoChmodFileSystem() {
    super(
        new RawLocalFileSystem() {
          @Override
          public void setPermission(Path path, FsPermission permission) {
            // as the umask has it
          }
        });
  }
}
