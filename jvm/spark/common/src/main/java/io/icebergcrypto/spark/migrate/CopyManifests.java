package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.Version;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.GenericManifestFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.io.FileIO;

/**
 * The manifests of copied files: one for each group when it is copied; and those of the table to
 * be, which have the files of the copies that it uses, and no others.
 */
final class CopyManifests {
  private static final int FORMAT_VERSION = 3;
  private static final Long ANY_SNAPSHOT = 1L; // Iceberg reads no manifest without one

  private final Map<LoggedGroup, LoggedGroup> made = new HashMap<>();
  private final Set<String> begun = new LinkedHashSet<>(); // their paths, written or not

  /** Writes a manifest that no snapshot has yet. */
  static ManifestFile write(BaseTable target, String path, int specId, List<DataFile> files) {
    EncryptedOutputFile file = target.encryption().encrypt(target.io().newOutputFile(path));
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(FORMAT_VERSION, target.operations().current().spec(specId), file, null);
    try (writer) {
      files.forEach(writer::add);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + path, e);
    }

    return writer.toManifestFile();
  }

  /**
   * The files that a group's manifest lists, in order, used or not. Without their partitions where
   * the table no longer has the group's spec: no version consists of that group then.
   */
  static List<DataFile> files(BaseTable target, LoggedGroup group) {
    List<DataFile> files = new ArrayList<>();
    for (ManifestFile manifest : group.manifests()) {
      ManifestFile readable =
          GenericManifestFile.copyOf(manifest).withSnapshotId(ANY_SNAPSHOT).build();
      try (ManifestReader<DataFile> reader =
          ManifestFiles.read(readable, target.io(), spec(target, group, manifest))) {
        reader.forEach(file -> files.add(file.copy()));
      } catch (IOException e) {
        throw new UncheckedIOException("Cannot read " + manifest.path(), e);
      }
    }

    return files;
  }

  private static Map<Integer, PartitionSpec> spec(
      BaseTable target, LoggedGroup group, ManifestFile manifest) {
    int id = manifest.partitionSpecId();
    PartitionSpec spec = target.specs().get(id);
    boolean isThat = spec != null && PartitionSpecParser.toJson(spec).equals(group.spec());
    return Map.of(id, isThat ? spec : PartitionSpec.unpartitioned());
  }

  /**
   * The same copies, in manifests that a snapshot can have. Those of an earlier round stay.
   *
   * @param target the table to be
   */
  Map<Version, List<LoggedGroup>> of(BaseTable target, Map<Version, List<LoggedGroup>> versions) {
    Map<Version, List<LoggedGroup>> all = new LinkedHashMap<>();
    versions.forEach(
        (version, groups) ->
            all.put(
                version,
                groups.stream()
                    .map(group -> made.computeIfAbsent(group, used -> ofUsed(target, used)))
                    .toList()));
    return all;
  }

  private LoggedGroup ofUsed(BaseTable target, LoggedGroup group) {
    List<DataFile> listed = files(target, group);
    List<DataFile> used = group.positions().stream().mapToObj(listed::get).toList();
    if (used.isEmpty()) {
      return group.in(List.of());
    }

    String path = target.operations().metadataFileLocation(UUID.randomUUID() + "-m0.avro");
    begun.add(path);
    return group.in(List.of(write(target, path, used.get(0).specId(), used)));
  }

  /**
   * Forgets the manifests that are gone, as orphan removal of other clients takes them for orphans.
   *
   * @param storage returns stored bytes
   * @return whether there were any
   */
  boolean forgetGone(FileIO storage) {
    return made.values()
        .removeIf(
            group ->
                group.manifests().stream()
                    .anyMatch(manifest -> !storage.newInputFile(manifest.path()).exists()));
  }

  /**
   * The manifests that no version has.
   *
   * @param kept what {@link #of} gave to each commit that was made, or may have been
   */
  List<String> unused(Collection<Map<Version, List<LoggedGroup>>> kept) {
    Set<String> used =
        paths(kept.stream().flatMap(groups -> groups.values().stream()).flatMap(List::stream));
    return begun.stream().filter(path -> !used.contains(path)).toList();
  }

  private static Set<String> paths(Stream<LoggedGroup> groups) {
    return groups
        .flatMap(group -> group.manifests().stream())
        .map(ManifestFile::path)
        .collect(Collectors.toSet());
  }
}
