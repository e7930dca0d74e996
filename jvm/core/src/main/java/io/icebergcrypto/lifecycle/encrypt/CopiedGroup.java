package io.icebergcrypto.lifecycle.encrypt;

import java.util.List;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Schema;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;

/**
 * Units of a plaintext table that were copied together, all or none of them.
 *
 * @param schemaId the schema that they were read and written with
 * @param lastColumnId the last column that the table had then
 * @param units what was copied
 * @param manifests the manifests of the new files, which no snapshot has yet; they hold keys
 */
public record CopiedGroup(
    int schemaId, int lastColumnId, List<Unit> units, List<ManifestFile> manifests) {

  /**
   * Whether the new files have all that another schema reads in the old ones: each of its columns,
   * unless that came later, in a type that is no wider.
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
    return String.format("CopiedGroup(%d units)", units.size());
  }
}
