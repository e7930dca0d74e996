package io.icebergcrypto.spark.verify;

import java.util.Locale;

/** How much of each file a verification reads. Each depth includes those before it. */
public enum Depth {
  /** The first bytes and, of Parquet, the last ones: whether the file is encrypted at all. */
  MAGIC,
  /** The header, the block layout, the footer and the file's length. Needs key metadata. */
  STRUCTURE,
  /** Every byte: the authentication tag of each block or Parquet module. */
  DEEP;

  /** The depth that two flags ask for; the deeper one includes the other. */
  public static Depth of(boolean structure, boolean deep) {
    return deep ? DEEP : structure ? STRUCTURE : MAGIC;
  }

  /** The name in lower case, as reports have it. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
