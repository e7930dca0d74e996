package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.EarlierReport.Recorded;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.format.Sha256;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.testing.TestKeystore;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which reports vouch for files that were checked before, and which outcomes are theirs. */
class EarlierReportTest {
  private static final String OF_TABLE =
      "{'table':'lake.db.t','table_uuid':'u1','ok':true,'depth':'deep',"
          + "'record':{'folder':'s3://b/r','index':'_record-1.json','sha256':'abc'}}";

  private static final AllowedKeyIds ANY = AllowedKeyIds.parse(null);

  @TempDir private static Path folder;
  private static CachingKmsClient kms;

  @BeforeAll
  static void makeKeys() throws Exception {
    kms = KmsClients.create(TestKeystore.create(folder, "audit", "other").properties());
  }

  @AfterAll
  static void close() {
    kms.close();
  }

  private static String signed(String report, String keyId) {
    JsonObject document = JsonParser.parseString(report.replace('\'', '"')).getAsJsonObject();
    String signature = DocumentSignature.sign(document.toString(), keyId, ANY, kms);
    document.add("signature", JsonParser.parseString(signature));
    return document.toString();
  }

  private static EarlierReport checked(String report) {
    return EarlierReport.of(signed(report, "audit"), "audit", 0.01, ANY, kms);
  }

  @Test
  void itVouchesForWhatWasRecordedOfItsTableAtItsDepth() {
    Recorded record = new Recorded("s3://b/r", "_record-1.json", "abc");
    EarlierReport one = checked(OF_TABLE);
    assertThat(one.recordOf("t", "u1", "deep")).isEqualTo(record);
    assertThat(one.toMap()).containsEntry("key_id", "audit").containsEntry("recheck", 0.01);
    assertThat(one.toMap()).containsOnlyKeys("key_id", "signed_at", "mac", "recheck");
    refused(() -> one.recordOf("t", "u2", "deep"), "it is on another table, lake.db.t");
    refused(() -> one.recordOf("t", null, "deep"), "it is on another table");
    refused(() -> one.recordOf("t", "u1", "structure"), "its depth is deep, not structure");
    refused(() -> with("true", "false").recordOf("t", "u1", "deep"), "it is not ok");
    refused(() -> with("'record'", "'other'").recordOf("t", "u1", "deep"), "it has no record");

    String wrong = OF_TABLE.replace("u1", "u2").replace("true", "false");
    EarlierReport several = checked(String.format("{'reports':[%s,%s]}", OF_TABLE, wrong));
    assertThat(several.recordOf("t", "u1", "deep")).isEqualTo(record);
    assertThat(several.recordOf("t", "u2", "deep")).isEqualTo(Recorded.NONE);
    assertThat(several.recordOf("new", "u3", "deep")).isEqualTo(Recorded.NONE);
    String other = OF_TABLE.replace("db.t", "db.copy").replace("b/r", "b/copy");
    String unrecorded = OF_TABLE.replace("'record'", "'other'").replace("u1", "u4");
    EarlierReport copied =
        checked(String.format("{'reports':[%s,%s,%s]}", OF_TABLE, other, unrecorded));
    assertThat(copied.recordOf("lake.db.copy", "u1", "deep").folder()).isEqualTo("s3://b/copy");
    assertThat(copied.recordOf("lake.db.t", "u1", "deep")).isEqualTo(record);
    assertThat(copied.recordOf("renamed", "u4", "deep")).isEqualTo(Recorded.NONE);
    refused(() -> several.recordOf("t", "u1", "magic"), "its depth is deep, not magic");
  }

  private static EarlierReport with(String old, String changed) {
    return checked(OF_TABLE.replace(old, changed));
  }

  private static void refused(ThrowingCallable call, String why) {
    assertThatThrownBy(call)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("cannot vouch for files of t: " + why);
  }

  @Test
  void onlyTheKeyThatIsNamedAndAllowedVouches() {
    String report = signed(OF_TABLE, "audit");
    assertThatThrownBy(() -> EarlierReport.of(report.replace("u1", "u2"), "audit", 1, ANY, kms))
        .isInstanceOf(TamperedException.class);
    assertThatThrownBy(() -> EarlierReport.of(signed(OF_TABLE, "other"), "audit", 1, ANY, kms))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("signed with master key 'other', not 'audit'");
    assertThatThrownBy(() -> EarlierReport.of(report, null, 1, ANY, kms))
        .hasMessageContaining("without since_key_id");
    assertThatThrownBy(
            () -> EarlierReport.of(report, "audit", 1, AllowedKeyIds.parse("other"), kms))
        .isInstanceOf(AccessDeniedException.class);
    for (double share : new double[] {0, 1.01, Double.NaN}) {
      assertThatThrownBy(() -> EarlierReport.of(report, "audit", share, ANY, kms))
          .hasMessageContaining("not a share of the files");
    }
  }

  @Test
  void anIndexCountsForItsOwnFilesAsTheyWere() {
    RecordIndex index = RecordIndex.of(Map.of("run/b", "2", "run/a", "1"));
    String sha256 = Sha256.hex(index.bytes());
    RecordIndex read = RecordIndex.read(index.bytes(), sha256, "s3://b/r");
    assertThat(read).isEqualTo(index);
    read.require(Set.of("run/a", "run/b", "later/c"), "s3://b/r");
    isNotWhatWasSigned(
        () -> read.require(Set.of("run/a", "later/c"), "s3://b/r"), "run/b is missing");
    byte[] forged = RecordIndex.of(Map.of("run/b", "3")).bytes();
    isNotWhatWasSigned(() -> RecordIndex.read(forged, sha256, "s3://b/r"), "its index was changed");
  }

  @Test
  void resultsGoWhereTheRecordIs() {
    Recorded record = new Recorded("s3://b/r", "_record-1.json", "abc");
    EarlierReport one = checked(OF_TABLE);
    assertThat(one.folderOf("t", record, null)).isEqualTo("s3://b/r");
    assertThat(one.folderOf("t", record, "s3://b/r/")).isEqualTo("s3://b/r");
    assertThatThrownBy(() -> one.folderOf("t", record, "s3://b/new"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("The record of t is in s3://b/r, not in s3://b/new");
    EarlierReport several = checked(String.format("{'reports':[%s]}", OF_TABLE));
    assertThat(several.folderOf("t", record, "s3://b/all/t")).isEqualTo("s3://b/r");
    assertThat(several.folderOf("new", Recorded.NONE, "s3://b/all/new"))
        .isEqualTo("s3://b/all/new");
    assertThatThrownBy(() -> several.folderOf("new", Recorded.NONE, null))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("has no record of new");
  }

  private static void isNotWhatWasSigned(ThrowingCallable call, String why) {
    assertThatThrownBy(call)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("The record in s3://b/r is not what was signed: " + why);
  }
}
