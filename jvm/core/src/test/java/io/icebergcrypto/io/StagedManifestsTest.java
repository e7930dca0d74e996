package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.KeyPruning;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The manifests of a checkpoint, written and read as Iceberg's sink for Flink does. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class StagedManifestsTest extends LakeFixture {
  private static final String JOB = "0123456789abcdef0123456789abcdef";

  private Table table;
  private DataFile data;

  @BeforeEach
  void makeTable() {
    this.table = TestLake.createTable(catalog, "t", Map.of());
    TestLake.append(table, 1);
    this.data = TestLake.write(table, 2, 3);
  }

  @Test
  void theFilesOfACheckpointAreCommittedByAnotherProcess() throws IOException {
    ManifestFile staged = stage(location(1));

    assertThat(staged.keyMetadata()).isNull();
    assertThat(staged.length()).isEqualTo(Files.size(TestLake.path(staged.path())));
    try (EncryptedCatalog committer = lake.open(Map.of())) {
      Table same = committer.loadTable(T);
      same.newAppend().appendFile(read(same, staged).get(0)).commit();
      same.io().deleteFile(staged.path());
      assertThat(TestLake.ids(same)).containsExactly(1L, 2L, 3L);
      assertThat(TestLake.files(same)).allMatch(file -> TestLake.magic(file).encrypted());
    }
  }

  @Test
  void noKeyIsInItsBytes() throws IOException {
    int keys = TestLake.metadata(table).encryptionKeys().size();
    String bytes = bytes(TestLake.path(stage(location(1)).path()));

    assertThat(bytes)
        .startsWith("AGS1")
        .doesNotContain(text(ByteBuffers.toByteArray(data.keyMetadata())))
        .doesNotContain(data.location());
    // a sink that runs for months stages many: the table does not learn their keys
    assertThat(((TableEncryptionManager) table.encryption()).keys()).hasSize(keys);
  }

  /** Its KEK stays for 30 days, and is wrapped by the new master key. */
  @Test
  void itIsReadAfterBothRotations() throws IOException {
    ManifestFile staged = stage(location(1));
    MasterKeyRotation.run(catalog, T, "k2", false);
    KekRotation.run(catalog, T, true, false);
    KeyPruning.run(catalog, T, false);

    try (EncryptedCatalog later = lake.open(Map.of("encryption.allowed-key-ids", "k2"))) {
      Table same = later.loadTable(T);
      same.newAppend().appendFile(read(same, staged).get(0)).commit();
      assertThat(TestLake.ids(same)).containsExactly(1L, 2L, 3L);
    }
  }

  @Test
  void afterTheGracePeriodItIsReadUnderItsMasterKey() throws IOException {
    ManifestFile staged = stage(location(1));
    MasterKeyRotation.run(catalog, T, "k2", false);
    KekRotation.run(catalog, T, true, false);
    removeOlderKek();

    try (EncryptedCatalog later = lake.open(Map.of())) {
      Table same = later.loadTable(T);
      assertThatThrownBy(() -> read(same, staged))
          .isInstanceOf(NotSupportedException.class) // it accuses nobody
          .hasMessageContainingAll(
              "lake.db.t",
              staged.path(),
              "wrapped by master key 'k1', as the file says, and the table's is 'k2'",
              "docs/rotation.md, \"Jobs of Flink\"");
    }

    MasterKeyRotation.run(catalog, T, "k1", false); // as the docs say
    try (EncryptedCatalog later = lake.open(Map.of())) {
      assertThat(read(later.loadTable(T), staged)).hasSize(1);
    }
  }

  /** A sink of Flink loads its table once, when the job starts. */
  @Test
  void aTableThatWasLoadedBeforeRotationsStagesUnderTheKeysInForce() throws IOException {
    TableMetadata loaded = TestLake.metadata(table);
    try (EncryptedCatalog operator = lake.open(Map.of())) {
      MasterKeyRotation.run(operator, T, "k2", false);
      KekRotation.run(operator, T, true, false);
    }

    removeOlderKek();
    ManifestFile staged = stage(location(1));

    assertThat(TestLake.metadata(table)).as("schema and spec of its writers").isSameAs(loaded);
    assertThat(read(table, staged)).as("by a committer that is as old").hasSize(1);
    try (EncryptedCatalog later = lake.open(Map.of("encryption.allowed-key-ids", "k2"))) {
      Table same = later.loadTable(T);
      same.newAppend().appendFile(read(same, staged).get(0)).commit();
      assertThat(TestLake.ids(same)).containsExactly(1L, 2L, 3L);
    }
  }

  @Test
  void nothingIsStagedForATableThatIsGone() {
    catalog.dropTable(T, false);

    assertThatThrownBy(() -> stage(location(1))).isInstanceOf(NoSuchTableException.class);
    assertThat(TestLake.path(location(1))).doesNotExist();
  }

  /** Its rows are of another table, and its KEKs are for others. */
  @Test
  void nothingIsStagedForATableThatWasMadeAgain() {
    catalog.dropTable(T, false);
    TestLake.createTable(catalog, "t", Map.of());

    assertThatThrownBy(() -> stage(location(1)))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "another table was made under its name");
    assertThat(TestLake.path(location(1))).doesNotExist();
  }

  /** Checkpoints without rows commit nothing, so it does not learn of a rotation. */
  @Test
  void anIdleCommitterTakesTheKekAsItIsWrappedNow() throws IOException {
    try (EncryptedCatalog idle = lake.open(Map.of())) {
      Table committer = idle.loadTable(T);
      MasterKeyRotation.run(catalog, T, "k2", false);
      ManifestFile staged = stage(location(1));
      assertThat(read(committer, staged)).hasSize(1);

      catalog.dropTable(T, false);
      assertThatThrownBy(() -> read(committer, staged))
          .as("by the KEK of the catalog, not by that of its start")
          .isInstanceOf(NoSuchTableException.class);
    }
  }

  private void removeOlderKek() {
    String newest = Kek.newest(TestLake.metadata(catalog.loadTable(T))).orElseThrow().keyId();
    catalog
        .context()
        .repair(
            T,
            metadata -> {
              TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
              Kek.all(metadata).stream()
                  .map(EncryptedKey::keyId)
                  .filter(id -> !id.equals(newest))
                  .forEach(builder::removeEncryptionKey);
              return builder.build();
            });
  }

  @Test
  void itIsReadAfterItsKekIsGone() throws IOException {
    ManifestFile staged = stage(location(1));
    KekRotation.run(catalog, T, true, false);
    removeOlderKek();

    try (EncryptedCatalog later = lake.open(Map.of())) {
      Table same = later.loadTable(T);
      assertThat(read(same, staged)).hasSize(1);
    }
  }

  @Test
  void itStandsForNoOtherFile() throws IOException {
    ManifestFile staged = stage(location(1));
    ManifestFile next = stage(location(2));
    delete(TestLake.path(next.path()));
    Files.copy(TestLake.path(staged.path()), TestLake.path(next.path()));

    assertThatThrownBy(() -> read(table, next))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", next.path(), "written for another place");
  }

  @Test
  void aPlaintextOneIsRefused() throws IOException {
    ManifestFile staged = stage(location(1));
    Path path = TestLake.path(staged.path());
    delete(path);
    plainManifest(org.apache.iceberg.Files.localOutput(path.toFile()));
    assertThat(TestLake.magic(path)).isEqualTo(FileMagic.AVRO);

    assertThatThrownBy(() -> read(table, staged))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining(staged.path());
  }

  /** As Flink's maintenance tasks have it, and not the committer. */
  @Test
  void theFileIoThatTravelsReadsThem() throws Exception {
    ManifestFile staged = stage(location(1));
    FileIO travelled =
        SerializationUtil.deserializeFromBytes(SerializationUtil.serializeToBytes(table.io()));

    try (CloseableIterable<DataFile> files = ManifestFiles.read(staged, travelled, table.specs())) {
      assertThat(files).hasSize(1);
    }
  }

  @Test
  void otherNamesAreNotStagedManifests() {
    assertThat(StagedManifests.isNamed("s3://b/t/metadata/" + name(7, ""))).isTrue();
    assertThat(StagedManifests.isNamed("s3://b/t/metadata/" + name(7, "-db.t"))).isTrue();
    assertThat(StagedManifests.isNamed("s3://b/t/metadata/snap-1-1-" + JOB + ".avro")).isFalse();
    assertThat(StagedManifests.isNamed("/t/" + JOB + "-m0.avro")).isFalse();

    String other = table.location() + "/metadata/" + JOB + "-m0.avro";
    assertThatThrownBy(() -> plainManifest(table.io().newOutputFile(other)))
        .isInstanceOf(PlaintextException.class);
  }

  /** Whatever is in the storage: the very content, or an error of ours. */
  @Test
  void hostileBytes() throws IOException {
    TableEncryptionManager manager = manager("k1");
    byte[] content = "a manifest".getBytes(StandardCharsets.UTF_8);
    byte[] sealed = SealedContent.seal(manager, "s3://b/t/1.avro", content);
    assertThat(SealedContent.open(manager, "s3://b/t/1.avro", sealed)).isEqualTo(content);
    Fuzz.run(
        8,
        round -> {
          byte[] got = SealedContent.open(manager, "s3://b/t/1.avro", round.mutated(sealed));
          assertThat(got).isEqualTo(content);
          return true;
        });
  }

  /** A user of another key of the KMS who can write to the storage adds no files to this table. */
  @Test
  void aKekOfAnotherMasterKeyIsRefused() throws IOException {
    String location = "s3://b/t/1.avro";
    byte[] others = SealedContent.seal(manager("k2"), location, new byte[] {1});

    assertThatThrownBy(() -> SealedContent.open(manager("k1"), location, others))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            "lake.db.t", location, "'k2'", "'k1'", "Otherwise the file is forged")
        .hasMessageNotContainingAny("CALL", "rotate_master_key"); // it would wrap KEKs for a forger
  }

  /** The names are a forger's, who may write a hint there. */
  @Test
  void aForgedNameIsNoSentence() throws IOException {
    String location = "s3://b/t/1.avro";
    byte[] sealed = SealedContent.seal(manager("k2"), location, new byte[] {1});
    String text = new String(sealed, StandardCharsets.ISO_8859_1);
    int from = text.indexOf("{\"ke");
    String json = text.substring(from, sealed.length - Integer.BYTES);
    byte[] forged =
        json.replace("\"k2\"", "\"k2. Run\\nCALL x('arn:y')\"").getBytes(StandardCharsets.UTF_8);
    byte[] file =
        ByteBuffer.allocate(from + forged.length + Integer.BYTES)
            .put(sealed, 0, from)
            .put(forged)
            .putInt(forged.length)
            .array();

    assertThatThrownBy(() -> SealedContent.open(manager("k1"), location, file))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("'k2.?Run?CALL?x??arn:y??'");
  }

  /** As after a move to another KMS, or when a version of the master key is gone. */
  @Test
  void aKekThatTheKmsDoesNotUnwrapIsNotCalledTampered() throws IOException {
    String location = "s3://b/t/1.avro";
    Path other = Files.createDirectory(folder.resolve("other"));
    TestKeystore former = TestKeystore.create(other, "k1");
    TableEncryptionManager before =
        new TableEncryptionManager(
            "lake.db.t", List.of(), "k1", 16, KmsClients.create(former.properties()));
    byte[] sealed = SealedContent.seal(before, location, new byte[] {1});

    assertThatThrownBy(() -> SealedContent.open(manager("k1"), location, sealed))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", location, "the KMS does not unwrap it");
  }

  private TableEncryptionManager manager(String tableKeyId) {
    return new TableEncryptionManager(
        "lake.db.t",
        List.of(),
        tableKeyId,
        16,
        KmsClients.create(TestKeystore.existing(folder).properties()));
  }

  /** The file and Hadoop's checksum of it. */
  private static void delete(Path file) throws IOException {
    Files.delete(file);
    Files.delete(file.resolveSibling("." + file.getFileName() + ".crc"));
  }

  private String location(int count) {
    return table.location() + "/metadata/" + name(count, "");
  }

  private static String name(int count, String suffix) {
    return String.format("%s-%s-00000-0-12-%05d%s.avro", JOB, JOB, count, suffix);
  }

  private ManifestFile stage(String location) throws IOException {
    ManifestFile staged = plainManifest(table.io().newOutputFile(location));
    assertThat(TestLake.magic(TestLake.path(location))).isEqualTo(FileMagic.AGS1);
    return staged;
  }

  private ManifestFile plainManifest(OutputFile file) throws IOException {
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(3, PartitionSpec.unpartitioned(), file, 0L);
    try (writer) {
      writer.add(data);
    }

    return writer.toManifestFile();
  }

  private static List<DataFile> read(Table table, ManifestFile staged) throws IOException {
    try (CloseableIterable<DataFile> files =
        ManifestFiles.read(staged, table.io(), table.specs())) {
      return List.of(files.iterator().next().copy());
    }
  }

  private static String bytes(Path file) throws IOException {
    return text(Files.readAllBytes(file));
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }
}
