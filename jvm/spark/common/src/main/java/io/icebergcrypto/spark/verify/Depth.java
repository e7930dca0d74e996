package io.icebergcrypto.spark.verify;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** How much of each file a verification reads. Each depth includes those before it. */
public enum Depth {
  /** The first bytes and, of Parquet, the last ones: whether the file is encrypted at all. */
  MAGIC,
  /** The header, the block layout, the footer and the file's length. Needs key metadata. */
  STRUCTURE,
  /** Every byte: the authentication tag of each block or Parquet module. */
  DEEP;

  /**
   * The depth of this name, in any case.
   *
   * @throws InvalidConfigurationException when there is none; lists all
   */
  public static Depth of(String name) {
    return Arrays.stream(values())
        .filter(depth -> depth.label().equalsIgnoreCase(name))
        .findFirst()
        .orElseThrow(
            () ->
                new InvalidConfigurationException(
                    String.format("There is no depth '%s'", name),
                    "Give one of "
                        + Arrays.stream(values())
                            .map(Depth::label)
                            .collect(Collectors.joining(", "))
                        + "."));
  }

  /** The name in lower case, as users give it. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
