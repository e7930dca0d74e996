package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.Listing;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.SupportsPrefixOperations;

/**
 * The folder of a table's copy log. Its name begins with an underscore: Iceberg's removal of orphan
 * files passes over such folders, here and in stock clients. It has a file that is older than
 * anything that was copied; and, for each group, a header, a body and a manifest.
 */
final class CopyFolder {
  private static final String BEGUN = "begun";
  private static final String MANIFEST = ".avro";
  private static final Pattern HEADER = Pattern.compile("group-(\\d{6,9})\\.json");
  private static final Pattern BODY =
      Pattern.compile("copy-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.bin");

  /** Where the storage cannot list: so many numbers without a header are the end. */
  private static final int GAP = 20;

  private final FileIO storage;
  private final String path;

  CopyFolder(TableMetadata metadata, FileIO storage) {
    this.storage = FailFastFileIO.below(storage); // which lists
    this.path = metadata.location() + "/metadata/_encryption-" + metadata.uuid();
  }

  /** Its location. */
  String path() {
    return path;
  }

  /** A header's location. */
  String header(int number) {
    return in(String.format("group-%06d.json", number));
  }

  /** The location for a new group's manifest. */
  String newManifest() {
    return in("copy-" + UUID.randomUUID() + MANIFEST);
  }

  /** The location of the body that belongs to a manifest. */
  static String body(String manifest) {
    return manifest.substring(0, manifest.length() - MANIFEST.length()) + ".bin";
  }

  /** Whether it is where a body of this folder can be: anyone may have written a header. */
  boolean isBody(String location) {
    return location.startsWith(in(""))
        && BODY.matcher(location.substring(in("").length())).matches();
  }

  private static String manifest(String body) {
    return body.replaceFirst("\\.bin$", MANIFEST);
  }

  private String in(String name) {
    return path + "/" + name;
  }

  /** Says that from now on there are copies. */
  void begin() {
    isWritten(in(BEGUN), "{}");
  }

  /** When that was said, by the clock of the storage; null: no copy has begun. */
  Long begunMillis() {
    List<FileInfo> files = files();
    if (files == null) { // without listing no time is known
      boolean begun = exists(in(BEGUN)) || !headers().isEmpty();
      return begun ? Long.valueOf(0) : null;
    }

    return files.stream().map(FileInfo::createdAtMillis).min(Long::compare).orElse(null);
  }

  /** All headers by their numbers; the text of one that is gone meanwhile is null. */
  SortedMap<Integer, String> headers() {
    SortedMap<Integer, String> found = new TreeMap<>();
    List<FileInfo> files = files();
    if (files == null) {
      for (int number = 1, missing = 0; missing < GAP; number++) {
        String text = text(header(number));
        missing = text == null ? missing + 1 : 0;
        if (text != null) {
          found.put(number, text);
        }
      }

      return found;
    }

    for (FileInfo file : files) {
      Matcher name =
          HEADER.matcher(file.location().substring(file.location().lastIndexOf('/') + 1));
      if (name.matches()) {
        int number = Integer.parseInt(name.group(1));
        found.put(number, text(header(number)));
      }
    }

    return found;
  }

  /** Deletes all that is in it, as far as the storage can: what is left is of no use to anyone. */
  void delete(List<String> bodies) {
    List<String> all = new ArrayList<>();
    List<FileInfo> files = files();
    if (files == null) {
      headers().keySet().forEach(number -> all.add(header(number)));
      bodies.forEach(body -> all.addAll(List.of(body, manifest(body))));
      all.add(in(BEGUN));
    } else {
      files.forEach(file -> all.add(file.location()));
    }

    CatalogUtil.deleteFiles(storage, all, "copy log", true);
  }

  /** Writes a small file; false: it is there already. */
  boolean isWritten(String file, String text) {
    if (exists(file)) {
      return false;
    }

    try (OutputStream out = storage.newOutputFile(file).create()) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
      return true;
    } catch (AlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + file, e);
    }
  }

  private boolean exists(String file) {
    return storage.newInputFile(file).exists();
  }

  private String text(String file) {
    try (InputStream in = storage.newInputFile(file).newStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (NotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + file, e);
    }
  }

  /** What is in it; null: the storage cannot list. */
  private List<FileInfo> files() {
    if (!(TableFileIO.listed(storage) instanceof SupportsPrefixOperations listing)) {
      return null;
    }

    List<FileInfo> files = new ArrayList<>();
    try {
      Listing.below(listing, path).forEach(files::add);
    } catch (NotFoundException e) {
      return List.of();
    } catch (UncheckedIOException e) {
      if (!(e.getCause() instanceof FileNotFoundException)) {
        throw e;
      }
    }

    return files;
  }
}
