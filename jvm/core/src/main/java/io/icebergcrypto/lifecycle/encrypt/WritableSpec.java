package io.icebergcrypto.lifecycle.encrypt;

import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.types.Type;

/**
 * Which partition spec copied rows are written with. A column may be dropped once no field of the
 * current spec has it. Nobody can compute partitions of the older specs then, and in format version
 * 1 not those of the current one: dropped fields stay there as void ones.
 */
public final class WritableSpec {
  private WritableSpec() {}

  /**
   * The spec that files had, if rows can still be written with it; else the table's own, or
   * another. What the current schema lacks is in no partition: a tag that has the column reads it
   * from the files.
   *
   * @param form the table to be, through {@link #ensure}
   * @param written the schema that rows are written with
   */
  public static int of(TableMetadata form, Schema written, int specId) {
    return Stream.concat(
            Stream.of(specId, form.defaultSpecId()), form.specsById().keySet().stream().sorted())
        .filter(
            id -> isWritable(form.spec(id), form.schema()) && isWritable(form.spec(id), written))
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("No partition spec can be used"));
  }

  /**
   * The specs of the table to be, as JSON: the table may lose one of them, and give its id to
   * another one.
   */
  public static Set<String> all(TableMetadata base) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(base);
    ensure(base, builder);
    return builder.build().specs().stream()
        .map(PartitionSpecParser::toJson)
        .collect(Collectors.toSet());
  }

  /** Adds the spec of no partitions when no other can be used for rows of each schema. */
  static void ensure(TableMetadata base, TableMetadata.Builder builder) {
    if (!base.schemas().stream().allMatch(schema -> hasSpec(base, schema))) {
      builder.addPartitionSpec(PartitionSpec.unpartitioned());
    }
  }

  private static boolean hasSpec(TableMetadata base, Schema written) {
    return base.specs().stream()
        .anyMatch(spec -> isWritable(spec, base.schema()) && isWritable(spec, written));
  }

  /** Makes a spec that rows of a schema can be written with the default; the same if it can. */
  static void setDefault(TableMetadata metadata, Schema schema, TableMetadata.Builder builder) {
    PartitionSpec spec =
        Stream.concat(Stream.of(metadata.spec()), metadata.specs().stream())
            .filter(one -> isWritable(one, schema))
            .findFirst()
            .orElse(PartitionSpec.unpartitioned());
    if (spec != metadata.spec()) {
      builder.setDefaultPartitionSpec(spec);
    }
  }

  private static boolean isWritable(PartitionSpec spec, Schema schema) {
    return spec.isUnpartitioned()
        || spec.fields().stream()
            .allMatch(field -> hasSource(field.sourceId(), field.transform(), schema));
  }

  /** Whether a schema has the column of a partition or sort field, with a type that it takes. */
  static boolean hasSource(int sourceId, Transform<?, ?> transform, Schema schema) {
    Type type = schema.findType(sourceId);
    return type != null && transform.canTransform(type);
  }
}
