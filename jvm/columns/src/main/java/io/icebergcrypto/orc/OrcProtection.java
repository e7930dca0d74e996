package io.icebergcrypto.orc;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.parquet.FileProtection;
import io.icebergcrypto.parquet.FileProtection.By;
import io.icebergcrypto.parquet.FileProtection.Column;
import io.icebergcrypto.parquet.PageCheck;
import io.icebergcrypto.parquet.WatchedStorage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.EncryptionVariant;
import org.apache.orc.InMemoryKeystore;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.impl.KeyProvider;

/**
 * How ORC files are protected, by ORC's own reader. Their footers are plaintext, so that it takes
 * no key to tell.
 */
public final class OrcProtection {
  /** Its length is one byte, and that is the last of the file. */
  private static final int MOST_POSTSCRIPT = 256;

  /** The header of a compressed block has 23 bits for its length. */
  private static final int MOST_BLOCK = 1 << 23;

  private OrcProtection() {}

  /**
   * Reads a file's footer.
   *
   * @param hadoop has the storage's settings
   * @return null when no column has a key
   * @throws TamperedException when the footer is not what a writer makes
   * @throws IcebergCryptoException when the file cannot be read for another reason
   */
  public static FileProtection read(String location, Configuration hadoop) {
    return with(
        location,
        new InMemoryKeystore(), // no key is needed
        hadoop,
        OrcProtection::of);
  }

  private static FileProtection of(Reader reader) {
    EncryptionVariant[] variants = reader.getEncryptionVariants();
    if (variants.length == 0) {
      return null;
    }

    String algorithms =
        Stream.of(variants)
            .map(variant -> variant.getKeyDescription().getAlgorithm().name())
            .collect(Collectors.toCollection(TreeSet::new))
            .stream()
            .collect(Collectors.joining(", "));
    Map<Integer, String> masks = new HashMap<>();
    for (OrcProto.DataMask mask : reader.getFileTail().getFooter().getEncryption().getMaskList()) {
      String name =
          Stream.concat(Stream.of(mask.getName()), mask.getMaskParametersList().stream())
              .collect(Collectors.joining(","));
      mask.getColumnsList().forEach(column -> masks.put(column, name));
    }

    List<Column> columns = new ArrayList<>();
    leaves(reader.getSchema()).forEach(leaf -> columns.add(column(leaf, variants, masks)));
    return new FileProtection(algorithms, false, null, columns, null);
  }

  private static Stream<TypeDescription> leaves(TypeDescription type) {
    return type.getChildren() == null || type.getChildren().isEmpty()
        ? Stream.of(type)
        : type.getChildren().stream().flatMap(OrcProtection::leaves);
  }

  private static Column column(
      TypeDescription leaf, EncryptionVariant[] variants, Map<Integer, String> masks) {
    for (EncryptionVariant variant : variants) {
      if (isIn(leaf, variant)) {
        String mask = null;
        for (TypeDescription at = leaf; at != null && mask == null; at = at.getParent()) {
          mask = masks.get(at.getId());
        }

        return new Column(
            leaf.getFullFieldName(), By.COLUMN_KEY, variant.getKeyDescription().getKeyName(), mask);
      }
    }

    return new Column(leaf.getFullFieldName(), By.NOTHING, null, null);
  }

  private static boolean isIn(TypeDescription type, EncryptionVariant variant) {
    return variant.getRoot().getId() <= type.getId()
        && type.getId() <= variant.getRoot().getMaximumId();
  }

  /**
   * Reads all of a file's data, with the session's KMS. AES-CTR authenticates nothing: what was
   * changed may be read, too.
   *
   * @param hadoop has the KMS's settings
   * @return the columns whose keys may not be used, with the reason: they were not read
   * @throws TamperedException when the file is not what a writer makes
   * @throws IcebergCryptoException when the KMS or the storage failed
   */
  public static Map<String, String> readAll(String location, Configuration hadoop) {
    boolean hasKms =
        KmsClients.isConfigured(
            KmsClients.ofKms(hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX)));
    return with(
        location,
        hasKms ? new OrcKeyProvider(hadoop) : new InMemoryKeystore(),
        hadoop,
        OrcProtection::readAll);
  }

  private static Map<String, String> readAll(Reader reader) throws IOException {
    Map<String, String> left = new LinkedHashMap<>();
    TypeDescription schema = reader.getSchema();
    boolean[] include = new boolean[schema.getMaximumId() + 1];
    Arrays.fill(include, true);
    for (EncryptionVariant variant : reader.getEncryptionVariants()) {
      String reason = reasonToLeave(variant);
      if (reason != null) {
        left.put(variant.getRoot().getFullFieldName(), reason);
        for (int id = variant.getRoot().getId(); id <= variant.getRoot().getMaximumId(); id++) {
          include[id] = false;
        }
      }
    }

    try (RecordReader rows = reader.rows(reader.options().include(include))) {
      VectorizedRowBatch batch = schema.createRowBatch();
      while (rows.nextBatch(batch)) {
        batch.reset();
      }
    }

    return left;
  }

  /** Null: its key can be had. */
  private static String reasonToLeave(EncryptionVariant variant) throws IOException {
    try {
      return variant.getFileFooterKey() == null
          ? String.format(
              "key '%s' may not be used, or the session has no KMS for ORC files",
              variant.getKeyDescription().getKeyName())
          : null;
    } catch (AccessDeniedException | KeyNotFoundException e) {
      if (!Causes.isOfKey(e)) {
        throw e;
      }

      return e.problem();
    }
  }

  private interface Look<T> {
    T at(Reader reader) throws IOException;
  }

  private static <T> T with(String location, KeyProvider keys, Configuration hadoop, Look<T> look) {
    Path path = new Path(location);
    WatchedStorage storage;
    long length;
    try {
      storage = new WatchedStorage(path.getFileSystem(hadoop));
      length = storage.getFileStatus(path).getLen();
    } catch (IOException e) {
      throw notRead(location, e);
    }

    try {
      checkSizes(storage, path, length);
      OrcFile.ReaderOptions options =
          OrcFile.readerOptions(hadoop).filesystem(storage).setKeyProvider(keys);
      try (Reader reader = OrcFile.createReader(path, options)) {
        return look.at(reader);
      }
    } catch (IOException | RuntimeException e) {
      throw storage.typed(e, of -> notRead(location, of), () -> damaged(location, e));
    }
  }

  private static IcebergCryptoException notRead(String location, IOException ofStorage) {
    return new IcebergCryptoException(
        String.format("Cannot read %s: %s", location, Causes.innermostMessage(ofStorage)),
        "This says nothing about the file. Check that the storage is up and that Hadoop's settings"
            + " allow reading this file: ORC reads through Hadoop's file systems.",
        ofStorage);
  }

  /** ORC's reader allocates what the end of a file says, up to 2 GiB. */
  private static void checkSizes(FileSystem storage, Path path, long length) throws IOException {
    int end = (int) Math.min(length, MOST_POSTSCRIPT);
    byte[] tail = new byte[end];
    try (FSDataInputStream in = storage.open(path)) {
      in.readFully(length - end, tail);
    }

    int size = end == 0 ? 0 : tail[end - 1] & 0xff;
    if (size == 0 || size >= end) {
      throw new IOException("its last byte gives a postscript of " + size + " bytes");
    }

    OrcProto.PostScript postscript =
        OrcProto.PostScript.parseFrom(Arrays.copyOfRange(tail, end - 1 - size, end - 1));
    long block = postscript.getCompressionBlockSize();
    if (block < 0 || block > MOST_BLOCK) {
      throw new IOException("its postscript gives compressed blocks of " + block + " bytes");
    }

    for (long part :
        new long[] {
          postscript.getFooterLength(),
          postscript.getMetadataLength(),
          postscript.getStripeStatisticsLength()
        }) {
      if (part < 0 || part > length) {
        throw new IOException("its postscript gives a part of " + part + " bytes");
      }
    }
  }

  /** ORC authenticates nothing, so that nothing in a file proves that it was changed. */
  private static IcebergCryptoException damaged(String location, Exception cause) {
    return PageCheck.notUnderstood(
        location, "it is not a whole ORC file: " + Causes.innermostMessage(cause), cause);
  }
}
