package io.icebergcrypto.audit;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.metadata.CanonicalJson;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * A report that was signed before, on one table or on several. What it says of its record decides
 * which outcomes a later verification takes over.
 */
public final class EarlierReport {
  private final JsonObject document;
  private final double recheck;
  private final long seed = new SecureRandom().nextLong();

  private EarlierReport(JsonObject document, double recheck) {
    this.document = document;
    this.recheck = recheck;
  }

  /**
   * Where the outcomes are that a report vouches for.
   *
   * @param folder where they were recorded; null: nothing was
   * @param index the name of the {@link RecordIndex} in it
   * @param sha256 that of the index
   */
  public record Recorded(String folder, String index, String sha256) {
    /** That of a table of which there is no report: every file is checked. */
    public static final Recorded NONE = new Recorded(null, null, null);
  }

  /**
   * Checks its signature.
   *
   * @param document the report's JSON
   * @param keyId the master key that must have signed it
   * @param recheck the share of the files it vouches for that are checked again: more than 0, up to
   *     1
   * @throws InvalidConfigurationException when no key is named, or recheck is not a share
   * @throws io.icebergcrypto.IcebergCryptoException see {@link DocumentSignature#check}
   */
  public static EarlierReport of(
      String document,
      String keyId,
      double recheck,
      AllowedKeyIds allowed,
      KeyManagementClient kms) {
    if (!(recheck > 0 && recheck <= 1)) {
      throw new InvalidConfigurationException(
          String.format("recheck is %s, which is not a share of the files", recheck),
          "Give more than 0, and up to 1: 0.01 checks one recorded file in a hundred again.");
    }

    if (keyId == null) {
      throw new InvalidConfigurationException(
          "since is given without since_key_id",
          "Name the master key that must have signed the report.");
    }

    allowed.checkSigner(keyId);
    DocumentSignature.check(document, keyId, allowed, kms);
    return new EarlierReport(CanonicalJson.parse(document), recheck);
  }

  /** The share of the files that it vouches for that are checked again. */
  public double recheck() {
    return recheck;
  }

  /** Chooses these: the same ones each time this verification begins again. */
  public long seed() {
    return seed;
  }

  /** What identifies it, and the share: for the report that rests on it. */
  public Map<String, Object> toMap() {
    JsonObject signature = document.getAsJsonObject("signature");
    Map<String, Object> json = new LinkedHashMap<>();
    for (String name : List.of("key_id", "signed_at", "mac")) {
      json.put(name, text(signature, name));
    }

    json.put("recheck", recheck);
    return json;
  }

  /**
   * The record of a table.
   *
   * @param table its name; two of one UUID are told apart by it
   * @param depth what is checked of each file now
   * @return {@link Recorded#NONE} when the report is on several tables, and this one is not among
   *     them, had a problem or was not recorded
   * @throws InvalidConfigurationException when the report cannot vouch for the table's files
   */
  public Recorded recordOf(String table, String uuid, String depth) {
    JsonArray several = document.get("reports") instanceof JsonArray some ? some : null;
    List<JsonElement> all = several == null ? List.of(document) : several.asList();
    List<JsonObject> same =
        all.stream()
            .map(JsonElement::getAsJsonObject)
            .filter(one -> text(one, "table_uuid").equals(uuid))
            .toList();
    JsonObject report =
        same.stream()
            .filter(one -> text(one, "table").equals(table))
            .findFirst()
            .or(() -> same.stream().findFirst())
            .orElse(null);
    boolean isOk =
        report != null && report.get("ok") instanceof JsonPrimitive ok && ok.getAsBoolean();
    if (several != null && !(isOk && report.get("record") instanceof JsonObject)) {
      return Recorded.NONE;
    } else if (report == null) {
      throw refused(table, "it is on another table, " + text(document, "table"));
    } else if (!isOk) {
      throw refused(table, "it is not ok");
    } else if (!text(report, "depth").equals(depth)) {
      throw refused(table, String.format("its depth is %s, not %s", text(report, "depth"), depth));
    } else if (!(report.get("record") instanceof JsonObject record)) {
      throw refused(table, "it has no record, as it was made without resume");
    } else {
      return new Recorded(text(record, "folder"), text(record, "index"), text(record, "sha256"));
    }
  }

  /**
   * Where the outcomes of a table are recorded: beside those that the report vouches for.
   *
   * @param signed what {@link #recordOf} says of the table
   * @param given the folder that the caller names; null: none. It is for tables without a record.
   * @throws InvalidConfigurationException when the report is on one table whose record is
   *     elsewhere, or it has no record of this table and no folder is named
   */
  public String folderOf(String table, Recorded signed, String given) {
    if (signed.equals(Recorded.NONE)) {
      if (given == null) {
        throw new InvalidConfigurationException(
            "The earlier report has no record of " + table,
            "Give a folder to resume, so that the next report can rest on this one.");
      }

      return given;
    }

    boolean isOfOne = !document.has("reports");
    if (isOfOne && given != null && !folder(given).equals(folder(signed.folder()))) {
      throw new InvalidConfigurationException(
          String.format("The record of %s is in %s, not in %s", table, signed.folder(), given),
          "Leave resume out: new results go where the record is.");
    }

    return signed.folder();
  }

  private static String folder(String location) {
    return location.replaceFirst("/+$", "");
  }

  private static InvalidConfigurationException refused(String table, String why) {
    return new InvalidConfigurationException(
        String.format("The earlier report cannot vouch for files of %s: %s", table, why),
        "Nothing was verified. Give the last report that is on this table, ok, of the same depth"
            + " and made with resume; or verify without since, with a new folder to resume.");
  }

  private static String text(JsonObject object, String name) {
    return object.get(name) instanceof JsonPrimitive text ? text.getAsString() : "";
  }
}
