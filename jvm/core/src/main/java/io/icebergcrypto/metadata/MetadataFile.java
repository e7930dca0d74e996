package io.icebergcrypto.metadata;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.MalformedJsonException;
import io.icebergcrypto.format.Sha256;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.exceptions.NotFoundException;
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

  /**
   * Whether the file of metadata that was loaded still is of that table and of that commit. Reads
   * no more than the beginning, where Iceberg writes both.
   *
   * @return false also when there is no such file
   */
  public static boolean isStillThere(FileIO io, TableMetadata loaded) {
    String location = loaded.metadataFileLocation();
    String uuid = null;
    Long updated = null;
    try (InputStream file = FailFastFileIO.below(io).newInputFile(location).newStream();
        InputStream in = isCompressed(location) ? new GZIPInputStream(file) : file;
        JsonReader json = new JsonReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      json.beginObject();
      while ((uuid == null || updated == null) && json.hasNext()) {
        switch (json.nextName()) {
          case "table-uuid" -> uuid = json.nextString();
          case "last-updated-ms" -> updated = json.nextLong();
          default -> json.skipValue();
        }
      }
    } catch (NotFoundException | FileNotFoundException e) {
      return false;
    } catch (MalformedJsonException | ZipException | IllegalStateException | EOFException e) {
      return false; // a load says what is wrong with it
    } catch (IOException e) {
      throw new UncheckedIOException(String.format("Cannot read %s", location), e);
    }

    return Objects.equals(uuid, loaded.uuid())
        && Objects.equals(updated, loaded.lastUpdatedMillis());
  }

  private static boolean isCompressed(String location) {
    return TableMetadataParser.Codec.fromFileName(location) == TableMetadataParser.Codec.GZIP;
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
    if (!isCompressed(location)) {
      return bytes;
    }

    try (InputStream in = new GZIPInputStream(new ByteArrayInputStream(bytes))) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new IllegalArgumentException("it cannot be decompressed: " + e.getMessage(), e);
    }
  }
}
