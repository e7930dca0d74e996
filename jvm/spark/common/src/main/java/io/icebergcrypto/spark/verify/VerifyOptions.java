package io.icebergcrypto.spark.verify;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.EarlierReport;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * What a verification looks at.
 *
 * @param depth how much of each file is read
 * @param allSnapshots whether what any metadata file of the log reaches is checked, or what the
 *     current snapshot reaches
 * @param sample the share of data and delete files that are checked: more than 0, up to 1
 * @param seed chooses which
 * @param strays whether files that no metadata reaches are looked for; then all snapshots are
 *     checked, too
 * @param resume the folder where outcomes are recorded; null: that of since, or none
 * @param since the report that decides which recorded outcomes count; null: all do
 */
public record VerifyOptions(
    Depth depth,
    boolean allSnapshots,
    double sample,
    long seed,
    boolean strays,
    String resume,
    EarlierReport since) {
  /** Options of a check of every file. */
  public static VerifyOptions of(Depth depth, boolean allSnapshots, boolean strays) {
    return new VerifyOptions(depth, allSnapshots, 1.0, 0, strays, null, null);
  }

  /**
   * Checks the values.
   *
   * @throws InvalidConfigurationException when the sample is not a share
   */
  public VerifyOptions {
    if (!(sample > 0 && sample <= 1)) {
      throw new InvalidConfigurationException(
          String.format("sample is %s, which is not a share of the files", sample),
          "Give more than 0, and up to 1: 0.01 checks one file in a hundred.");
    }

    if (resume != null && resume.isBlank()) {
      throw new InvalidConfigurationException(
          "resume is empty", "Give the URI of a folder for the outcomes, or leave it out.");
    }

    allSnapshots = allSnapshots || strays;
  }

  /** These options for one of many tables, whose outcomes are recorded in a folder of its own. */
  public VerifyOptions forTable(String name) {
    if (resume == null) {
      return this;
    }

    String folder =
        resume.replaceFirst("/+$", "") + "/" + URLEncoder.encode(name, StandardCharsets.UTF_8);
    return new VerifyOptions(depth, allSnapshots, sample, seed, strays, folder, since);
  }
}
