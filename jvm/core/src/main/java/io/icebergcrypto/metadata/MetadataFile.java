package io.icebergcrypto.metadata;

import io.icebergcrypto.format.Sha256;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPInputStream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;

/**
 * A metadata file, read once: its hash, its JSON and its metadata come from the same bytes, even if
 * the file is exchanged.
 */
public final class MetadataFile {
  private final String location;
  private final byte[] bytes;
  private TableMetadata metadata;

  private MetadataFile(String location, byte[] bytes) {
    this.location = location;
    this.bytes = bytes;
  }

  /** One that was read already. */
  public static MetadataFile of(String location, byte[] bytes) {
    return new MetadataFile(location, bytes);
  }

  /** Reads all of it. Errors of the storage are as the FileIO raises them. */
  public static MetadataFile read(FileIO io, String location) {
    try (InputStream in = FailFastFileIO.below(io).newInputFile(location).newStream()) {
      return new MetadataFile(location, in.readAllBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(String.format("Cannot read %s", location), e);
    }
  }

  public String location() {
    return location;
  }

  /** Its length in bytes as it is stored. */
  public long length() {
    return bytes.length;
  }

  /** The SHA-256 of the file as it is stored, in hex, as sha256sum prints it. */
  public String sha256() {
    return Sha256.hex(bytes);
  }

  /**
   * Its metadata.
   *
   * @throws RuntimeException Iceberg's own, or that of {@link #json}, when it has none
   */
  public TableMetadata metadata() {
    if (metadata == null) {
      this.metadata = TableMetadataParser.fromJson(location, text());
    }

    return metadata;
  }

  /** Whether {@link #metadata} failed because a newer Iceberg wrote the file. */
  public static boolean isOfNewerFormat(RuntimeException failure) {
    return UnreadableMetadata.isOfNewerFormat(failure);
  }

  /**
   * The metadata of a view.
   *
   * @throws RuntimeException Iceberg's own, or that of {@link #json}, when it has none
   */
  public ViewMetadata viewMetadata() {
    return ViewMetadataParser.fromJson(location, text());
  }

  private String text() {
    try {
      return StandardCharsets.UTF_8
          .newDecoder() // refuses what is not UTF-8
          .decode(ByteBuffer.wrap(json()))
          .toString();
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("it is not JSON: it is not UTF-8", e);
    }
  }

  /**
   * All that it holds, decompressed.
   *
   * @throws IllegalArgumentException when it cannot be decompressed
   */
  public byte[] json() {
    boolean gzip =
        TableMetadataParser.Codec.fromFileName(location) == TableMetadataParser.Codec.GZIP;
    if (!gzip) {
      return bytes;
    }

    try (InputStream in = new GZIPInputStream(new ByteArrayInputStream(bytes))) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new IllegalArgumentException("it cannot be decompressed: " + e.getMessage(), e);
    }
  }
}
