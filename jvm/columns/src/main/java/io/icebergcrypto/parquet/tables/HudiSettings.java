package io.icebergcrypto.parquet.tables;

import static java.util.Map.entry;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The settings with which Hudi writes rows and values into Parquet files alone. Whatever else is
 * set, in this version of Hudi or a later one, is not known to be safe.
 */
public final class HudiSettings {
  /** Whether there is a metadata table; Hudi's own default is true. */
  public static final String METADATA = "hoodie.metadata.enable";

  private static final String ANY = ".*";
  private static final String FALSE = "false";
  private static final String HUDIS_OWN = "org\\.apache\\.(hudi|spark\\.sql\\.hudi)\\.[\\w.$]+";

  /** Names, and for each what its value must be, in any case. */
  private static final Map<Pattern, Pattern> SAFE =
      patterns(
          // what decides
          entry("hoodie\\.metadata\\.(.*\\.)?enabled?", FALSE),
          entry("hoodie\\.(datasource\\.write\\.(table|storage)|table)\\.type", "copy_on_write"),
          entry("type", "cow|copy_on_write"),
          entry("hoodie\\.(table\\.)?base\\.file\\.format", "parquet"),
          entry(
              "hoodie\\.table\\.(cdc\\.enabled|multiple\\.base\\.file\\.formats\\.enable)", FALSE),
          entry("hoodie\\.table\\.metadata\\.partitions(\\.inflight)?", ""),
          entry("hoodie\\.bloom\\.index\\.use\\.metadata", FALSE),
          entry("hoodie\\.index\\.type", "(global_)?(bloom|simple)"),
          entry(
              "hoodie\\.(datasource\\.write\\.|spark\\.sql\\.insert\\.into\\.)operation", // else
              "insert|upsert|bulk_insert|delete|delete_partition|insert_overwrite(_table)?"),
          // code that sees rows has to be Hudi's own
          entry("hoodie\\.(table|datasource\\.write)\\.keygenerator\\.class", HUDIS_OWN),
          entry("hoodie\\.(sql\\.origin\\.keygen|table\\.legacy\\.payload)\\.class", HUDIS_OWN),
          entry("hoodie\\.(table|datasource)\\.partition_extractor_class", HUDIS_OWN),
          entry("hoodie\\.(compaction|datasource\\.write)\\.payload\\.class", HUDIS_OWN),
          entry("hoodie\\.io\\.factory\\.class", HUDIS_OWN), // which it sets itself
          // names of the table and of its columns
          entry("hoodie\\.(table|database|datasource\\.write\\.table)\\.name", ANY),
          entry("hoodie\\.datasource\\.write\\.(recordkey|partitionpath|precombine)\\.field", ANY),
          entry("hoodie\\.payload\\.event\\.time\\.field", ANY), // its column is checked
          entry("hoodie\\.table\\.(recordkey|partition|ordering)\\.fields|path|comment", ANY),
          entry(
              "hoodie\\.table\\.precombine\\.field|primaryKey|preCombineField|orderingFields", ANY),
          entry("hoodie\\.(datasource\\.write|table)\\.keygenerator\\.type", ANY),
          entry("hoodie\\.keygen\\.timebased\\..*|hoodie\\.populate\\.meta\\.fields", ANY),
          entry(
              "hoodie\\.datasource\\.write\\.(hive_style_partitioning|partitionpath\\.urlencode"
                  + "|slash\\.separated\\.date\\.partitioning|drop\\.partition\\.columns"
                  + "|keygenerator\\.consistent\\.logical\\.timestamp\\.enabled"
                  + "|partitions\\.to\\.delete)",
              ANY),
          entry("hoodie\\.partition\\.metafile\\.use\\.base\\.format", ANY),
          // how Hudi keeps its own
          entry("hoodie\\.table\\.((initial\\.)?version|checksum|create\\.schema)", ANY),
          entry("hoodie\\.table\\.(timeline\\.timezone|log\\.file\\.format)", ANY),
          entry("hoodie\\.table\\.format", "native"),
          entry("hoodie\\.table\\.(relative\\.)?index\\.defs\\.path", ANY),
          entry("hoodie\\.timeline\\.(layout\\.version|path|history\\.path)", ANY),
          entry("hoodie\\.archivelog\\.folder|hoodie\\.table\\.partial\\.update\\.mode", ANY),
          entry("hoodie\\.write\\.(auto\\.upgrade|table\\.version|markers\\.type)", ANY),
          entry("hoodie\\.write\\.(concurrency\\.mode|lock\\..*)", ANY),
          entry("hoodie\\.(clean|cleaner|keep|archive|embed\\.timeline\\.server)\\..*", ANY),
          entry("hoodie\\.(commits\\.archival\\.batch|embed\\.timeline\\.server)", ANY),
          entry("hoodie\\.(datasource\\.hive_sync|datasource\\.meta\\.sync|meta\\.sync)\\..*", ANY),
          // how rows are merged, sorted and divided
          entry("hoodie\\.(write\\.)?record\\.merge\\.(mode|strategy\\.id)", ANY),
          entry("hoodie\\.datasource\\.write\\.record\\.merger\\.strategy", ANY),
          entry("hoodie\\.compaction\\.record\\.merger\\.strategy", ANY),
          entry("hoodie\\.combine\\.before\\..*|hoodie\\.merge\\.allow\\..*", ANY),
          entry("hoodie\\.datasource\\.(insert\\.dup\\.policy|overwrite\\.mode)", ANY),
          entry(
              "hoodie\\.datasource\\.write\\.(insert\\.drop\\.duplicates|row\\.writer\\.enable"
                  + "|reconcile\\.schema)",
              ANY),
          entry("hoodie\\.(sql\\.insert\\.mode|sql\\.bulk\\.insert\\.enable)", ANY),
          entry("hoodie\\.spark\\.sql\\.(optimized\\.writes|merge\\.into\\.partial)\\..*", ANY),
          entry("hoodie\\.schema\\.on\\.read\\.enable|hoodie\\.avro\\.schema\\.validate", ANY),
          entry("hoodie\\..*\\.parallelism|hoodie\\.copyonwrite\\..*", ANY),
          entry("hoodie\\.bulkinsert\\.sort\\.mode", ANY),
          entry("hoodie\\.(bloom|simple)\\.index\\..*|hoodie\\.index\\.bloom\\..*", ANY),
          entry(
              "hoodie\\.parquet\\.((block|page)\\.size|max\\.file\\.size|small\\.file\\.limit"
                  + "|compression\\.(codec|ratio)|dictionary\\.enabled|outputtimestamptype"
                  + "|write\\.utc|writelegacyformat\\.enabled)",
              ANY),
          // clustering by the strategies that Hudi has by default, which read rows and write them
          entry("hoodie\\.clustering\\.(inline|schedule\\.inline|async\\.enabled)", ANY),
          entry("hoodie\\.clustering\\.(inline|async)\\.max\\.commits", ANY),
          entry(
              "hoodie\\.clustering\\.plan\\.strategy\\.(sort\\.columns|small\\.file\\.limit"
                  + "|target\\.file\\.max\\.bytes|max\\.bytes\\.per\\.group|max\\.num\\.groups"
                  + "|daybased\\..*)",
              ANY),
          entry("hoodie\\.datasource\\.clustering\\.(inline|async)\\.enable", ANY),
          entry("hoodie\\.(datasource\\.compaction\\.async\\.enable|compact\\..*)", ANY), // no logs
          // of reads
          entry("hoodie\\.datasource\\.(read|query)\\..*|hoodie\\.enable\\.data\\.skipping", ANY),
          entry("hoodie\\.file\\.index\\.enable", ANY),
          // Spark's and a metastore's own, which Hudi does not read
          entry("__partition_columns|mergeSchema|spark\\.sql\\..*|transient_lastDdlTime", ANY),
          entry("last_commit_(completion_)?time_sync|serialization\\.format|owner|provider", ANY));

  private HudiSettings() {}

  @SafeVarargs
  private static Map<Pattern, Pattern> patterns(Map.Entry<String, String>... entries) {
    Map<Pattern, Pattern> patterns = new java.util.LinkedHashMap<>();
    for (Map.Entry<String, String> one : entries) {
      patterns.put(
          Pattern.compile(one.getKey()),
          Pattern.compile(one.getValue(), Pattern.CASE_INSENSITIVE | Pattern.DOTALL));
    }

    return patterns;
  }

  /** What is set that is not known to be safe, as {@code name=value}. */
  public static List<String> unknown(Map<String, String> settings) {
    return new TreeMap<>(settings)
        .entrySet().stream()
            .filter(setting -> !isSafe(setting.getKey(), setting.getValue().trim()))
            .map(setting -> setting.getKey() + "=" + setting.getValue())
            .toList();
  }

  /** The first of the names that fit decides, so what is written above. */
  private static boolean isSafe(String name, String value) {
    return SAFE.entrySet().stream()
        .filter(safe -> safe.getKey().matcher(name).matches())
        .findFirst()
        .filter(safe -> safe.getValue().matcher(value).matches())
        .isPresent();
  }

  /** One value for a setting that has two: where the two differ, neither is safe. */
  public static String both(String one, String other) {
    return one.equals(other) ? one : one + " and " + other;
  }

  /** Whether these turn the metadata table off. */
  public static boolean turnMetadataOff(Map<String, String> settings) {
    return FALSE.equalsIgnoreCase(settings.getOrDefault(METADATA, "").trim());
  }
}
