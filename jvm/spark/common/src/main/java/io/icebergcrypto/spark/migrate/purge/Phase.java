package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.format.Json;
import java.util.List;
import java.util.stream.Stream;

/**
 * The steps of a purge, in their order. One begins when the files of those before are proved gone,
 * so that what is left can always be read from what names it. The table's property says which has
 * begun: from then on, what the steps before have deleted is not a gap in the old tree.
 */
enum Phase {
  DATA(
      FileKind.DATA,
      FileKind.POSITION_DELETES,
      FileKind.EQUALITY_DELETES,
      FileKind.DELETION_VECTOR),
  MANIFESTS(FileKind.MANIFEST),
  MANIFEST_LISTS(FileKind.MANIFEST_LIST, FileKind.STATISTICS, FileKind.PARTITION_STATISTICS),
  METADATA_FILES(FileKind.METADATA_FILE);

  private final List<FileKind> kinds;

  Phase(FileKind... kinds) {
    this.kinds = List.of(kinds);
  }

  /** The name for people, and in the property. */
  String label() {
    return Json.words(this);
  }

  /** The step of this {@link #label()}; the first if no step has it. */
  static Phase ofLabel(String label) {
    return Stream.of(values())
        .filter(phase -> phase.label().equals(label))
        .findFirst()
        .orElse(DATA);
  }

  /** What it deletes, as the column kind has it. */
  Object[] kinds() {
    return kinds.stream().map(FileKind::label).toArray();
  }

  /** Whether it has begun, or is over, when another has begun. */
  boolean isReached(Phase begun) {
    return compareTo(begun) <= 0;
  }

  /**
   * Whether a file of a kind that names others may be missing: once the deletion of its kind has
   * begun.
   */
  static boolean mayMiss(FileKind kind, Phase begun) {
    return Stream.of(values()).anyMatch(p -> p.kinds.contains(kind) && p.isReached(begun));
  }
}
