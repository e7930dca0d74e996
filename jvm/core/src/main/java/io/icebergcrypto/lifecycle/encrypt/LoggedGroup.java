package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.util.BitSet;
import java.util.List;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;

/**
 * Units of a plaintext table that were copied together, or some of them: those that are still as
 * they were.
 *
 * @param schemaId the schema that they were read and written with
 * @param lastColumnId the last column that the table had then
 * @param spec the partition spec of the new files, as JSON
 * @param nameMapping what {@link #nameMapping} was when they were read
 * @param copies what was copied
 * @param manifests the manifests of the new files, which no snapshot has yet; they hold keys
 */
public record LoggedGroup(
    int schemaId,
    int lastColumnId,
    String spec,
    String nameMapping,
    List<UnitCopy> copies,
    List<ManifestFile> manifests) {

  /**
   * A hash of the names by which files without column ids are read, as those that were imported. A
   * column that is added later may have the name of one that such files have.
   */
  public static String nameMapping(TableMetadata table) {
    String mapping = table.property(TableProperties.DEFAULT_NAME_MAPPING, "");
    return Sha256.hex(mapping.getBytes(StandardCharsets.UTF_8));
  }

  /** Some of the copies. */
  public LoggedGroup with(List<UnitCopy> some) {
    return new LoggedGroup(schemaId, lastColumnId, spec, nameMapping, List.copyOf(some), manifests);
  }

  /** The same copies, in manifests that have no other files. */
  public LoggedGroup in(List<ManifestFile> others) {
    return new LoggedGroup(schemaId, lastColumnId, spec, nameMapping, copies, others);
  }

  /** Which files of the group's manifest are of these copies. */
  public BitSet positions() {
    BitSet positions = new BitSet();
    copies.forEach(copy -> positions.set(copy.first(), copy.first() + copy.files()));
    return positions;
  }

  /** How many rows the copies have. */
  public long rows() {
    return copies.stream().mapToLong(UnitCopy::rows).sum();
  }

  /**
   * Whether the new files have all that another schema reads in the old ones: each of its columns,
   * unless that came later, in a type that is not wider.
   *
   * @param written the schema that they were written with
   */
  public boolean suits(Schema written, Schema wanted) {
    return TypeUtil.indexById(wanted.asStruct()).values().stream()
        .allMatch(field -> field.fieldId() > lastColumnId || has(written, field));
  }

  private static boolean has(Schema written, Types.NestedField field) {
    Type type = written.findType(field.fieldId());
    return type != null
        && (type.equals(field.type())
            || type.isNestedType() && type.typeId() == field.type().typeId()
            || type.isPrimitiveType()
                && TypeUtil.isPromotionAllowed(type, field.type().asPrimitiveType()));
  }

  /** Without the paths and keys of the manifests. */
  @Override
  public String toString() {
    return String.format("LoggedGroup(%d units)", copies.size());
  }
}
