package io.icebergcrypto.spark.verify.scan;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.KeyedFile;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.GenericManifestFile;
import org.apache.iceberg.GenericPartitionFieldSummary;
import org.apache.iceberg.InternalData;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;

/**
 * A table's tree of files as executors read it: manifest lists, which are named by their place in a
 * list, then manifests, then data and delete files. What travels is the table (references to its
 * KMS, wrapped keys) and the paths and key ids of manifest lists: key metadata is read from the
 * tree where it is needed, and stays there.
 *
 * <p>The annotation leaves this class to Java's serialization, as the table in it needs.
 */
@DefaultSerializer(JavaSerializer.class)
public final class TableTree implements Serializable {
  private static final long serialVersionUID = 1L;

  private static final List<String> WHAT_A_FILE_IS =
      List.of("content", "file_path", "file_format", "file_size_in_bytes");
  private static final List<String> WHAT_A_FILE_IS_WITH_KEYS =
      List.of("content", "file_path", "file_format", "file_size_in_bytes", "key_metadata");
  private static final List<String> KEY_METADATA = List.of("file_path", "key_metadata");

  private final Table table;
  private final List<KeyedFile> lists;

  /**
   * Takes what executors need.
   *
   * @param table the table as an audit reads it
   * @param lists its manifest lists
   */
  public TableTree(Table table, List<ReachableFile> lists) {
    this.table = SerializableTable.copyOf(table);
    this.lists = lists.stream().map(list -> new KeyedFile(list.path(), list.keyId())).toList();
  }

  /** A file as it is stored, not decrypted. */
  public InputFile stored(String path) {
    return table.io().newInputFile(path);
  }

  /** The table's FileIO, which decrypts. */
  public FileIO io() {
    return table.io();
  }

  /**
   * A manifest list, decrypted.
   *
   * @param list its place among the lists
   */
  public InputFile list(int list) {
    return table.io().newInputFile(lists.get(list));
  }

  /**
   * The plaintext key metadata of a manifest list or a statistics file. It is a secret.
   *
   * @param keyId the id of its entry in the table's metadata; null when it has none
   * @return null when it has none
   * @throws RuntimeException when the metadata has no such key; a stock catalog's is Iceberg's own
   */
  public ByteBuffer keyMetadata(String path, String keyId) {
    if (keyId == null) {
      return null;
    }

    KeyedFile file = new KeyedFile(path, keyId);
    return table.io() instanceof TableFileIO io
        ? io.keyMetadata(file)
        : file.decryptKeyMetadata(table.encryption());
  }

  /**
   * The manifests of a manifest list, with their key metadata.
   *
   * @param list its place among the lists
   */
  public CloseableIterable<ManifestFile> manifests(int list) {
    return InternalData.read(FileFormat.AVRO, list(list))
        .setRootType(GenericManifestFile.class)
        .setCustomType(
            ManifestFile.PARTITION_SUMMARIES_ELEMENT_ID, GenericPartitionFieldSummary.class)
        .project(ManifestFile.schema())
        .build();
  }

  /**
   * Some manifests of a manifest list, by path.
   *
   * @throws NotFoundException when the list does not have them all
   */
  public Map<String, ManifestFile> manifests(int list, Set<String> paths) {
    Map<String, ManifestFile> found = new HashMap<>();
    try (CloseableIterable<ManifestFile> all = manifests(list)) {
      for (ManifestFile manifest : all) {
        if (paths.contains(manifest.path())) {
          found.put(manifest.path(), manifest);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    if (found.size() < paths.size()) {
      throw new NotFoundException("%s lists other manifests now", lists.get(list).location());
    }

    return found;
  }

  /** The live data or delete files of a manifest: path, content, format, length. */
  public CloseableIterable<? extends ContentFile<?>> files(ManifestFile manifest) {
    return files(manifest, false);
  }

  /** The same. With key metadata, they are secrets. */
  public CloseableIterable<? extends ContentFile<?>> files(
      ManifestFile manifest, boolean withKeys) {
    return read(manifest, withKeys ? WHAT_A_FILE_IS_WITH_KEYS : WHAT_A_FILE_IS);
  }

  /** The key metadata of some live files of a manifest, by path. They are secrets. */
  public Map<String, ByteBuffer> keyMetadata(ManifestFile manifest, Set<String> paths) {
    Map<String, ByteBuffer> found = new HashMap<>();
    try (CloseableIterable<? extends ContentFile<?>> files = read(manifest, KEY_METADATA)) {
      for (ContentFile<?> file : files) {
        if (paths.contains(file.location())) {
          found.put(file.location(), file.keyMetadata());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return found;
  }

  private CloseableIterable<? extends ContentFile<?>> read(
      ManifestFile manifest, List<String> columns) {
    FileIO io = table.io();
    return manifest.content() == ManifestContent.DATA
        ? ManifestFiles.read(manifest, io, table.specs()).select(columns)
        : ManifestFiles.readDeleteManifest(manifest, io, table.specs()).select(columns);
  }

  /** Where a task has the tree from. */
  public interface Source extends Serializable {
    /** The tree, on the machine that asks. */
    TableTree value();
  }

  /**
   * A tree for checks on the driver and in Spark's tasks: it is broadcast for the first of these.
   */
  public static final class Shared implements AutoCloseable {
    private final SparkSession spark;
    private final TableTree tree;
    private Broadcast<TableTree> broadcast;

    /** Broadcasts nothing yet. */
    public Shared(SparkSession spark, TableTree tree) {
      this.spark = spark;
      this.tree = tree;
    }

    /** The tree for the driver. */
    public Source here() {
      return () -> tree;
    }

    /** The tree for Spark's tasks. */
    public Source there() {
      if (broadcast == null) {
        this.broadcast = JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(tree);
      }

      return broadcast::value;
    }

    @Override
    public void close() {
      if (broadcast != null) {
        broadcast.destroy();
      }
    }
  }
}
