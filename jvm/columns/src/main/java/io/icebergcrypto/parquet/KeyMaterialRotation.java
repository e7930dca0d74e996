package io.icebergcrypto.parquet;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.call.Causes;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.keytools.HadoopFSKeyMaterialStore;
import org.apache.parquet.crypto.keytools.KeyToolkit;

/**
 * Rewraps the keys of all Parquet files below a folder with the newest versions of their master
 * keys: Parquet's own tool, on each folder with files. The keys are in files beside the Parquet
 * files, which stay as they are.
 *
 * <p>Parquet's tool writes a new file of keys, deletes the old one, and renames the new one: if it
 * is killed in between, the Parquet file is unreadable. The next run begins with that renaming.
 */
public final class KeyMaterialRotation {
  private static final String PREFIX = HadoopFSKeyMaterialStore.KEY_MATERIAL_FILE_PREFIX;
  private static final String TEMPORARY = HadoopFSKeyMaterialStore.TEMP_FILE_PREFIX + PREFIX;
  private static final String SUFFIX = HadoopFSKeyMaterialStore.KEY_MATERIAL_FILE_SUFFFIX;
  private static final Set<String> OF_DELTA = Set.of("_delta_log", "_change_data");

  private final Configuration hadoop;
  private final FileSystem storage;
  private final Map<Path, Set<String>> files = new TreeMap<>();
  private int restored = 0;

  private KeyMaterialRotation(Configuration hadoop, FileSystem storage) {
    this.hadoop = hadoop;
    this.storage = storage;
  }

  /**
   * Rotates. Nobody may write to the folder meanwhile.
   *
   * @param hadoop has the KMS's settings
   * @return {@code folder, folders, files, restored}: how many there were, and how many were made
   *     readable after an earlier run was killed
   * @throws InvalidConfigurationException when there is no such folder, or no Parquet file in it
   * @throws NotSupportedException when a file has its wrapped keys in itself, or belongs to a Delta
   *     table; nothing was changed
   * @throws IcebergCryptoException the KMS's own typed error; what was rotated before stays so
   */
  public static Map<String, Object> rotate(String folder, Configuration hadoop) {
    Path root = new Path(folder);
    Configuration own = new ParquetSettings(hadoop).forParquet();
    own.setBoolean(KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME, false);
    try {
      KeyMaterialRotation rotation = new KeyMaterialRotation(own, root.getFileSystem(own));
      rotation.find(root);
      return rotation.rotate(folder);
    } catch (FileNotFoundException e) {
      throw new InvalidConfigurationException("There is no folder " + folder, "Check the path.", e);
    } catch (IOException | RuntimeException e) {
      throw typed(folder, e);
    }
  }

  private static IcebergCryptoException typed(String folder, Exception error) {
    return Causes.typed(error)
        .orElseGet(
            () ->
                new IcebergCryptoException(
                    String.format("The keys below %s could not be rotated: %s", folder, error),
                    "Files keep either their old wrapped keys or have new ones. Fix what failed,"
                        + " and run it again.",
                    error));
  }

  /** Goes through folders and, before anything else, checks that all files can be rotated. */
  private void find(Path root) throws IOException {
    Deque<Path> folders = new ArrayDeque<>(Set.of(root));
    while (!folders.isEmpty()) {
      Path folder = folders.remove();
      Set<String> names = new TreeSet<>();
      for (FileStatus found : storage.listStatus(folder)) {
        String name = found.getPath().getName();
        if (!found.isDirectory()) {
          names.add(name);
        } else if (OF_DELTA.contains(name)) {
          throw new NotSupportedException(
              String.format("%s is a folder of a Delta table, whose keys are not rotated", folder),
              "Delta neither moves nor cleans key files. Write the table again with its wrapped"
                  + " keys in the Parquet files. No key was rotated.");
        } else if (!name.startsWith(".") && (!name.startsWith("_") || name.contains("="))) {
          folders.add(found.getPath()); // as Spark reads them: _x=1 is a partition
        }
      }

      Set<String> visible = new TreeSet<>(names);
      visible.removeIf(name -> name.startsWith("_") || name.startsWith("."));
      for (String name : visible) {
        if (!names.contains(PREFIX + name + SUFFIX)) {
          restore(folder, name, names);
        }
      }

      if (!visible.isEmpty()) {
        files.put(folder, visible);
      }
    }
  }

  private void restore(Path folder, String name, Set<String> names) throws IOException {
    if (!names.contains(TEMPORARY + name + SUFFIX)) {
      throw new NotSupportedException(
          String.format(
              "%s keeps its wrapped keys in the file itself, or is plaintext",
              new Path(folder, name)),
          "Only keys in files beside the Parquet files can be rotated (key_material_beside, "
              + KeyToolkit.KEY_MATERIAL_INTERNAL_PROPERTY_NAME
              + "=false). Rewrite the file. No key was rotated.");
    }

    Path lost = new Path(folder, TEMPORARY + name + SUFFIX);
    if (!storage.rename(lost, new Path(folder, PREFIX + name + SUFFIX))) {
      throw new IOException("Could not rename " + lost);
    }

    restored++;
  }

  private Map<String, Object> rotate(String folder) throws IOException {
    if (files.isEmpty()) {
      throw new InvalidConfigurationException(
          "There is no file in " + folder, "Name the folder of a table of Parquet files.");
    }

    // Parquet does so itself, once an hour
    KeyToolkit.removeCacheEntriesForToken(hadoop.get(KeyToolkit.KEY_ACCESS_TOKEN_PROPERTY_NAME));
    int count = 0;
    for (Map.Entry<Path, Set<String>> one : files.entrySet()) {
      KeyToolkit.rotateMasterKeys(one.getKey().toString(), hadoop);
      count += one.getValue().size();
    }

    Map<String, Object> done = new LinkedHashMap<>();
    done.put("folder", folder);
    done.put("folders", files.size());
    done.put("files", count);
    done.put("restored", restored);
    return done;
  }
}
