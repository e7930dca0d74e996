package io.icebergcrypto.spark;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.SettingsGuard;
import io.icebergcrypto.spark.columns.FromScala;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.WeakHashMap;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * Where the settings of catalogs and KMSs may come from. A driver's credentials are those of who
 * started it; with Spark Connect and Spark's Thrift server others have sessions in it, and {@code
 * SET spark.sql.catalog.lake.uri} of theirs would send these credentials to an address of theirs.
 *
 * <p>By default settings are those that Spark was started with, or those of the application's first
 * session, which no client of such a server gets: a notebook's is this one. Of a catalog values
 * count, not threads. Of a KMS client they do, too, unless the first session asks for it itself, as
 * it does with options of a write: that is told by the thread's active session, which Spark sets
 * for what it does for any session.
 */
public final class ServerSettings implements SettingsGuard {
  /** A setting that only counts where Spark was started with it. */
  static final String FROM = "spark.iceberg-crypto.settings-from";

  private static final String DRIVER = "driver"; // its executor id
  private static final String CATALOG = "spark.sql.catalog.";
  private static final String SINGLE_SESSION = "spark.sql.hive.thriftServer.singleSession";

  private static final String IN_TASKS =
      " Tasks also accept what the driver has checked: if they are options of a read, give its"
          + " schema, too, with .schema(...); Spark infers one before anything is checked. If no"
          + " session has them, they are stored with the table: find out who set them.";

  /** Options that lead nowhere, and that say nothing of what is encrypted or shown. */
  private static final List<String> OF_ANY_SESSION =
      List.of("cache-enabled", "cache.", "default-namespace", "table-default.");

  /** The KMSs that Spark was started with: reading Hadoop's files again takes too long. */
  private static final Map<SparkEnv, List<Map<String, String>>> STARTED =
      Collections.synchronizedMap(new WeakHashMap<>());

  /** The settings of files that Spark was started with. */
  private static final Map<SparkEnv, Map<String, String>> STARTED_OF_FILES =
      Collections.synchronizedMap(new WeakHashMap<>());

  /** The service loader makes one. */
  public ServerSettings() {}

  private enum From {
    /** What Spark was started with, and what the application's first session has. */
    APPLICATION,
    /** What Spark was started with. */
    STATIC,
    /** Any session. */
    SESSION;

    static From of(SparkConf conf) {
      String text = conf.get(FROM, "application");
      for (From from : values()) {
        if (from.name().toLowerCase(Locale.ROOT).equals(text)) {
          // all clients of such a Thrift server have the first session
          return from == APPLICATION && conf.getBoolean(SINGLE_SESSION, false) ? STATIC : from;
        }
      }

      throw new InvalidConfigurationException(
          String.format("%s is neither application, static nor session: '%s'", FROM, text),
          "Start Spark with one of them, or without it: application.");
    }
  }

  /**
   * Checks the options of a catalog of this project, all of which decide where tables, keys and
   * credentials go, or what is encrypted and shown.
   *
   * @throws InvalidConfigurationException when a session has set one, or taken one away
   */
  static void checkCatalog(String name, Map<String, String> options) {
    SparkConf conf = SparkEnv.get().conf();
    From from = From.of(conf);
    String prefix = CATALOG + name + ".";
    Map<String, String> started = below(prefix, ofSpark(conf));
    Map<String, String> first = from == From.APPLICATION ? below(prefix, ofFirst()) : started;
    Map<String, String> given = below("", options);
    if (from == From.SESSION
        || started.isEmpty() && first.isEmpty() && !KmsClients.isConfigured(given)) {
      return; // without a KMS, a catalog that nobody else has is like one of Iceberg's own
    }

    TreeSet<String> names = new TreeSet<>(given.keySet());
    names.addAll(started.keySet());
    names.removeIf(
        option ->
            OF_ANY_SESSION.stream().anyMatch(option::startsWith)
                || Objects.equals(given.get(option), started.get(option))
                || Objects.equals(given.get(option), first.get(option)));
    if (!names.isEmpty()) {
      throw refused("Catalog " + name, prefix, names, "");
    }
  }

  /**
   * Checks what a KMS client is to be made of. Tasks accept what Spark was started with, and what
   * their driver has checked before.
   */
  @Override
  public void check(Map<String, String> properties) {
    SparkEnv env = SparkEnv.get();
    if (env == null) {
      return; // no Spark runs here
    }

    From from = From.of(env.conf());
    if (from == From.SESSION) {
      return;
    }

    Map<String, String> asked = KmsProperties.deciding(properties);
    if (isDriver(env)) {
      checkInDriver(env, from, asked);
      TaskApprovals.addKms(asked);
    } else if (!TaskApprovals.haveKms(asked)) {
      List<Map<String, String>> started = STARTED.computeIfAbsent(env, ServerSettings::started);
      if (!started.contains(asked)) {
        throw refused("A KMS client", "", differing(asked, started), IN_TASKS);
      }
    }
  }

  private static boolean isDriver(SparkEnv env) {
    return TaskContext.get() == null && env.executorId().equals(DRIVER);
  }

  private static void checkInDriver(SparkEnv env, From from, Map<String, String> asked) {
    List<Map<String, String>> known =
        new ArrayList<>(STARTED.computeIfAbsent(env, ServerSettings::started));
    if (from == From.APPLICATION && isOfFirst() || known.contains(asked)) {
      return;
    }

    if (from == From.APPLICATION && SparkSession.getDefaultSession().isDefined()) {
      known.addAll(
          groups(
              ofFirst(),
              SparkSession.getDefaultSession().get().sparkContext().hadoopConfiguration()));
    }

    if (!known.contains(asked)) {
      throw refused("A KMS client", "", differing(asked, known), "");
    }
  }

  @Override
  public void tell(Map<String, String> settings) {
    TaskApprovals.setFiles(settings);
  }

  /**
   * Checks that a file has the settings of the session that the driver told of, or, where it told
   * of none, those that Spark was started with: in any mode, for a table's own could be anyone's.
   */
  @Override
  public void checkStored(String program, Map<String, String> settings, Predicate<String> decides) {
    SparkEnv env = SparkEnv.get();
    if (env == null) {
      return;
    }

    Set<String> differ =
        TaskApprovals.unlikeFiles(settings)
            .orElseGet(
                () ->
                    differing(
                        settings,
                        STARTED_OF_FILES.computeIfAbsent(
                            env,
                            one ->
                                ofFiles(
                                    ofSpark(one.conf()),
                                    SparkHadoopUtil.get().newConfiguration(one.conf()),
                                    decides))));
    if (!differ.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s is about to write a file with settings other than this session's: %s",
              program, String.join(", ", differ)),
          String.format(
              "%s takes them from its log, which anyone may have changed who can write there. If"
                  + " the table has such properties, find out who set them, and remove them: ALTER"
                  + " TABLE ... UNSET TBLPROPERTIES (...). If it has none, start Spark with the"
                  + " settings that this session has. Nothing was written.",
              program));
    }
  }

  /** What files get from settings and, where these do not have it, from Hadoop's configuration. */
  private static Map<String, String> ofFiles(
      Map<String, String> settings, Configuration hadoop, Predicate<String> decides) {
    Map<String, String> found = new TreeMap<>();
    hadoop.forEach(setting -> found.put(setting.getKey(), setting.getValue()));
    found.putAll(settings);
    found.keySet().removeIf(decides.negate());
    return found;
  }

  private static List<Map<String, String>> started(SparkEnv env) {
    return groups(ofSpark(env.conf()), SparkHadoopUtil.get().newConfiguration(env.conf()));
  }

  /** Whether this thread works for the application's first session. */
  private static boolean isOfFirst() {
    return SparkSession.getActiveSession().isDefined()
        && SparkSession.getDefaultSession().isDefined()
        && SparkSession.getActiveSession().get() == SparkSession.getDefaultSession().get();
  }

  /** The settings that decide of each KMS that catalogs and files have. */
  private static List<Map<String, String>> groups(
      Map<String, String> settings, Configuration hadoop) {
    Map<String, Map<String, String>> catalogs = new HashMap<>();
    below(CATALOG, settings)
        .forEach(
            (name, value) -> {
              int dot = name.indexOf('.');
              if (dot > 0) {
                catalogs
                    .computeIfAbsent(name.substring(0, dot), ignored -> new TreeMap<>())
                    .put(name.substring(dot + 1), value);
              }
            });
    Map<String, String> files =
        new TreeMap<>(hadoop.getPropsWithPrefix(KmsProperties.HADOOP_PREFIX));
    files.putAll(below(KmsProperties.HADOOP_PREFIX, settings));
    catalogs.put("", files);
    return catalogs.values().stream().map(KmsProperties::deciding).toList();
  }

  /** The names by which some settings differ from those known ones that are the most like them. */
  private static TreeSet<String> differing(
      Map<String, String> asked, List<Map<String, String>> known) {
    return known.stream()
        .map(one -> differing(asked, one))
        .min(Comparator.comparingInt(TreeSet::size))
        .orElseGet(() -> new TreeSet<>(asked.keySet()));
  }

  private static TreeSet<String> differing(Map<String, String> a, Map<String, String> b) {
    TreeSet<String> names = new TreeSet<>(a.keySet());
    names.addAll(b.keySet());
    names.removeIf(name -> Objects.equals(a.get(name), b.get(name)));
    return names;
  }

  /** By names without the prefix, in lower case: catalogs tell no case apart. */
  private static Map<String, String> below(String prefix, Map<String, String> settings) {
    Map<String, String> found = new TreeMap<>();
    settings.forEach(
        (name, value) -> {
          if (name.startsWith(prefix)) {
            found.put(name.substring(prefix.length()).toLowerCase(Locale.ROOT), value);
          }
        });
    return found;
  }

  private static Map<String, String> ofSpark(SparkConf conf) {
    Map<String, String> settings = new HashMap<>();
    for (scala.Tuple2<String, String> setting : conf.getAll()) {
      settings.put(setting._1(), setting._2());
    }

    return settings;
  }

  /** The settings of the application's first session. */
  private static Map<String, String> ofFirst() {
    Option<SparkSession> first = SparkSession.getDefaultSession();
    return first.isDefined()
        ? FromScala.map(first.get().sessionState().conf().getAllConfs())
        : Map.of();
  }

  /** Without values: one may be a secret, put there by mistake. */
  private static InvalidConfigurationException refused(
      String what, String prefix, TreeSet<String> names, String more) {
    return new InvalidConfigurationException(
        String.format(
            "%s is set up by a session with values other than those Spark was started with: %s%s",
            what, prefix, String.join(", " + prefix, names)),
        String.format(
            "The credentials of this process are sent where such settings say, so these have to be"
                + " given when Spark is started (spark-defaults.conf, --conf), or in the"
                + " application's first session; here, RESET them.%s If all who have sessions may"
                + " send these credentials anywhere, start Spark with %s=session.",
            more, FROM));
  }
}
