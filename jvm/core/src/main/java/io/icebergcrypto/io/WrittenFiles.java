package io.icebergcrypto.io;

import io.icebergcrypto.format.Sha256;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.util.ByteBuffers;

/**
 * What a manager has encrypted of manifests and manifest lists, until the check of a commit has
 * read it, which then asks the storage for nothing. Only that check reads here. Everybody else
 * reads what the storage has, and so notices when it is not what was written.
 */
public final class WrittenFiles {
  /** The check reads from the storage what is larger in all. */
  private static final int MOST_BYTES = 4 << 20;

  private static final int MOST_CHECKED = 1000;

  private final Map<String, Written> files = new LinkedHashMap<>();
  private final Set<ByteBuffer> checked =
      Collections.newSetFromMap(
          new LinkedHashMap<>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<ByteBuffer, Boolean> eldest) {
              return size() > MOST_CHECKED;
            }
          });
  private int bytes;

  /** A file's content, and its key, which tells it from another file of the same name. */
  private record Written(NativeEncryptionKeyMetadata key, byte[] content) {
    boolean isOf(NativeEncryptionKeyMetadata other) {
      return key.encryptionKey().equals(other.encryptionKey())
          && key.aadPrefix().equals(other.aadPrefix());
    }
  }

  /** Keeps what is written to a file if it is a manifest or a manifest list, by its name. */
  UnaryOperator<PositionOutputStream> keeping(NativeEncryptionOutputFile file) {
    String location = file.plainOutputFile().location();
    return isOfMetadata(location.substring(location.lastIndexOf('/') + 1))
        ? stream ->
            new KeptStream(
                stream,
                MOST_BYTES,
                content -> add(location, new Written(file.keyMetadata(), content)))
        : UnaryOperator.identity();
  }

  /** The names that Iceberg's commits give them. */
  private static boolean isOfMetadata(String name) {
    return name.matches("(snap-.*|.*-m\\d+)\\.avro");
  }

  private synchronized void add(String location, Written file) {
    forget(location);
    files.put(location, file);
    bytes += file.content.length;
    while (bytes > MOST_BYTES) { // commits that did not come to their check
      forget(files.keySet().iterator().next());
    }
  }

  /**
   * Whether a commit has checked a manifest before: one that was retried, say. Its key tells, as
   * nobody can write another manifest under it.
   */
  public synchronized boolean isChecked(ManifestFile manifest) {
    return checked.contains(fingerprint(manifest));
  }

  /** Whether the check of a manifest asks the storage for nothing. */
  public synchronized boolean isAtHand(ManifestFile manifest) {
    return files.containsKey(manifest.path()) || isChecked(manifest);
  }

  /** Remembers that a manifest was checked. */
  public synchronized void checked(ManifestFile manifest) {
    checked.add(fingerprint(manifest));
  }

  /** Of the key metadata, which has the key in it. */
  private static ByteBuffer fingerprint(ManifestFile manifest) {
    byte[] path = manifest.path().getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.wrap(Sha256.of(path, ByteBuffers.toByteArray(manifest.keyMetadata())));
  }

  /** Forgets what a file holds. */
  public synchronized void forget(String location) {
    Written file = files.remove(location);
    if (file != null) {
      bytes -= file.content.length;
      Arrays.fill(file.content, (byte) 0); // a manifest has the keys of files
    }
  }

  private synchronized InputFile orStored(InputFile stored) {
    Written file = files.get(stored.location());
    return file != null
            && stored instanceof NativeEncryptionInputFile encrypted
            && file.isOf(encrypted.keyMetadata())
        ? new InMemoryInputFile(stored.location(), file.content)
        : stored;
  }

  /**
   * A table's FileIO for the check of a commit: it reads what was kept, and else what is stored.
   *
   * @param io the table's own
   */
  public FileIO over(FileIO io) {
    return new KeptFileIO(io);
  }

  private final class KeptFileIO implements FileIO {
    private static final long serialVersionUID = 1L;

    private final transient FileIO io;

    private KeptFileIO(FileIO io) {
      this.io = io;
    }

    @Override
    public InputFile newInputFile(ManifestListFile list) {
      return orStored(io.newInputFile(list));
    }

    @Override
    public InputFile newInputFile(ManifestFile manifest) {
      return orStored(io.newInputFile(manifest));
    }

    @Override
    public InputFile newInputFile(String path) {
      return io.newInputFile(path);
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return io.newOutputFile(path);
    }

    @Override
    public void deleteFile(String path) {
      io.deleteFile(path);
    }
  }
}
