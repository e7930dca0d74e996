package io.icebergcrypto.kms.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import org.apache.commons.text.similarity.LevenshteinDistance;

/** Misspelt names of properties: case, dots and dashes do not count. */
public final class Spelling {
  private Spelling() {}

  /** The known name that is most like a misspelt one. */
  public static String nearest(String name, Collection<String> known) {
    return known.stream()
        .min(Comparator.comparingInt(other -> distance(name, other)))
        .orElseThrow();
  }

  /**
   * How many letters or digits are to be changed, added or left out to make one name of another.
   */
  public static int distance(String name, String other) {
    return LevenshteinDistance.getDefaultInstance().apply(letters(name), letters(other));
  }

  private static String letters(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
  }
}
