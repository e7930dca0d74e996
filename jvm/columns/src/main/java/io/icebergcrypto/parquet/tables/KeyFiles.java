package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.NotSupportedException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;

/**
 * Files of wrapped keys, which Parquet writes beside a Parquet file while that has its temporary
 * name: whoever moves the one without the other loses its keys for good. So they are written only
 * where what puts files in their places is known to move whole folders.
 */
public final class KeyFiles {
  /** Spark's, of partitions that are elsewhere than their table. */
  public static final String PARTITIONS_ELSEWHERE =
      "Spark's commit of partitions with locations of their own";

  private static final String SPARKS_STAGING = ".spark-staging-";

  private KeyFiles() {}

  /**
   * Refuses them.
   *
   * @param target what is written, for errors
   * @param by who would leave them behind
   * @throws NotSupportedException when the keys of files are to be beside them
   */
  public static void check(ColumnChoices chosen, String target, String by) {
    if (chosen.namesKeys() && chosen.keysBeside()) {
      throw refused(target, by);
    }
  }

  private static NotSupportedException refused(String target, String by) {
    return new NotSupportedException(
        String.format("%s: %s neither moves nor cleans key files", target, by),
        "Leave parquet.encryption.key.material.store.internally (key_material_beside) out: wrapped"
            + " keys are then in the Parquet files. Nothing was written.");
  }

  /**
   * Checks the place of a file that is about to get a file of keys beside it.
   *
   * @param hadoop as its writer has it: it says where the job's files will be
   * @throws NotSupportedException when it is neither below that folder nor in Hadoop's temporary
   *     folder there: S3A's committers upload files from elsewhere one by one, and Spark moves
   *     those in its staging folder so
   */
  public static void checkPlace(Path file, Configuration hadoop) {
    String output = hadoop.get(FileOutputFormat.OUTDIR);
    if (output == null) {
      return; // a program that writes the file itself, where it stays
    }

    Path folder = new Path(output);
    URI root = folder.toUri();
    String below = root.relativize(file.makeQualified(root, folder).toUri()).getPath();
    if (below.startsWith("_temporary/")) {
      return;
    }

    if (folder.getName().startsWith(SPARKS_STAGING) || below.startsWith(SPARKS_STAGING)) {
      throw refused(file.toString(), PARTITIONS_ELSEWHERE);
    }

    if (below.startsWith("/") || below.matches("[_.][^=/]*/.*")) {
      throw refused(file.toString(), "the committer of this job");
    }
  }
}
