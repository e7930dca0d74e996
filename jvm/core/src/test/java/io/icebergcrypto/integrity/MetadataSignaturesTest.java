package io.icebergcrypto.integrity;

import static io.icebergcrypto.integrity.MetadataAuthenticationTest.edit;
import static io.icebergcrypto.integrity.MetadataAuthenticationTest.file;
import static io.icebergcrypto.integrity.MetadataAuthenticationTest.metadata;
import static io.icebergcrypto.integrity.MetadataAuthenticationTest.replace;
import static io.icebergcrypto.integrity.MetadataAuthenticationTest.sha256;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.metadata.MetadataPlace;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TestLake;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.io.InputFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What signs metadata: which content, which keys, under which master keys. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP"})
class MetadataSignaturesTest extends LakeFixture {
  private static final long DAY = TimeUnit.DAYS.toMillis(1);

  // ---- helpers

  private Table table(Map<String, String> properties) {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", properties), 1);
    return table;
  }

  private Table reloaded() throws IOException {
    return lake.open(Map.of()).loadTable(T);
  }

  private void assertRefused(String... words) throws IOException {
    Table table = reloaded();
    assertThatThrownBy(table::schema)
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", "metadata is refused")
        .hasMessageContainingAll(words);
    assertThatThrownBy(() -> TestLake.write(table, 77)).isInstanceOf(TamperedException.class);
  }

  private static String text(Path file) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    if (file.toString().contains(".gz.")) {
      bytes = new GZIPInputStream(new ByteArrayInputStream(bytes)).readAllBytes();
    }

    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void write(Path file, String text) throws IOException {
    if (!file.toString().contains(".gz.")) {
      replace(file, text);
      return;
    }

    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream out = new GZIPOutputStream(bytes)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }

    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.write(file, bytes.toByteArray());
  }

  private static void change(Path file, Consumer<JsonObject> change) throws IOException {
    JsonObject json = CanonicalJson.parse(text(file));
    change.accept(json);
    write(file, json.toString());
  }

  /** What another client with the key would have written: the file, changed and then signed. */
  private void sign(Path file, String kekId, Consumer<JsonObject> change) throws IOException {
    JsonObject json = CanonicalJson.parse(text(file));
    change.accept(json);
    byte[] bytes = json.toString().getBytes(StandardCharsets.UTF_8);
    InMemoryFileIO io = new InMemoryFileIO();
    io.addFile("x.metadata.json", bytes);
    TableMetadata metadata = MetadataFile.read(io, "x.metadata.json").metadata();
    EncryptedKey kek = SigningKeys.find(metadata, "k1", kekId).orElseThrow();
    ByteBuffer key = catalog.context().kms().unwrapKey(kek.encryptedKeyMetadata(), "k1");
    SecretKeySpec derived = MetadataMac.key(key, metadata.uuid());
    if (!json.getAsJsonObject("properties").has(MetadataMac.PROPERTY)) {
      json.getAsJsonObject("properties").addProperty(MetadataMac.PROPERTY, "");
    }

    byte[] text = json.toString().getBytes(StandardCharsets.UTF_8);
    MetadataMac mac = MetadataMac.make(text, MetadataPlace.of(file.toString()), derived, kekId);
    write(file, new String(mac.putInto(text), StandardCharsets.UTF_8));
  }

  private static String kekId(Table table) {
    return MetadataMac.parse(metadata(table).properties().get(MetadataMac.PROPERTY)).kekId();
  }

  /** The metadata that it has, past what it holds in memory. */
  private static JsonObject entry(JsonObject json, String kekId) {
    for (var element : json.getAsJsonArray("encryption-keys")) {
      if (element.getAsJsonObject().get("key-id").getAsString().equals(kekId)) {
        return element.getAsJsonObject();
      }
    }

    throw new AssertionError(kekId);
  }

  // ---- fields of a later Iceberg

  private static JsonObject first(JsonObject json, String array) {
    return json.getAsJsonArray(array).get(0).getAsJsonObject();
  }

  /** Where a later Iceberg may put something. */
  private static final Map<String, Consumer<JsonObject>> LATER = new LinkedHashMap<>();

  static {
    LATER.put("at the top", json -> json.addProperty("later", 1.50));
    LATER.put("in a snapshot", json -> first(json, "snapshots").add("later", new JsonArray()));
    LATER.put(
        "in a field",
        json ->
            first(json, "schemas")
                .getAsJsonArray("fields")
                .get(0)
                .getAsJsonObject()
                .addProperty("later", "x"));
    LATER.put(
        "in a ref",
        json -> json.getAsJsonObject("refs").getAsJsonObject("main").addProperty("later", 2));
    LATER.put("in a key", json -> first(json, "encryption-keys").addProperty("later", true));
  }

  private void fieldsOfALaterIceberg(Table table) throws IOException {
    Path file = file(table);
    String kekId = kekId(table);
    String genuine = text(file);
    for (Map.Entry<String, Consumer<JsonObject>> later : LATER.entrySet()) {
      write(file, genuine);
      sign(file, kekId, later.getValue());
      assertThat(TestLake.ids(reloaded())).as(later.getKey()).containsExactly(1L);
      String signed = text(file);
      for (String edited :
          new String[] {
            signed.replace("\"later\"", "\"later2\""),
            signed.replaceFirst("(\"later\":)([^,}]+)", "$1\"other\""),
            signed.replaceFirst(",?\"later\":[^,}]+", ""),
            signed.replaceFirst("\"later\":", "\"added\": 1, \"later\":"),
            signed.replaceFirst("\"later\":", "\"later\": 1, \"later\":"),
          }) {
        assertThat(edited).isNotEqualTo(signed);
        write(file, edited);
        assertRefused(sha256(file));
      }
    }

    write(file, genuine);
    sign(file, kekId, json -> LATER.values().forEach(later -> later.accept(json)));
    TestLake.append(reloaded(), 2);
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L);
  }

  @Test
  void fieldsOfALaterIcebergAreSigned() throws IOException {
    fieldsOfALaterIceberg(table(Map.of()));
  }

  @Test
  void fieldsOfALaterIcebergAreSignedInCompressedFiles() throws IOException {
    Table table = table(Map.of("write.metadata.compression-codec", "gzip"));
    assertThat(file(table).toString()).contains(".gz.");
    fieldsOfALaterIceberg(table);
  }

  /**
   * This Iceberg does not read it; the MAC is of the file's bytes, at each check of what was
   * loaded.
   */
  @Test
  void aFieldThatNobodyReadsIsRefused() throws IOException {
    Table table = table(Map.of());
    change(file(table), LATER.get("at the top"));
    assertRefused("its MAC does not match");
  }

  @Test
  void aFileThatIsExchangedBetweenTheCatalogsReadAndOursIsRefused() throws IOException {
    Table table = table(Map.of());
    Path file = file(table);
    for (boolean later : new boolean[] {false, true}) {
      if (later) {
        sign(file, kekId(table), LATER.get("at the top"));
      }

      JsonObject forged = CanonicalJson.parse(text(file));
      MetadataAuthenticationTest.dropSnapshots(forged);
      try (EncryptedCatalog raced = lake.open(Map.of("io-impl", Watched.class.getName()))) {
        Watched.give(file, forged.toString());
        assertThatThrownBy(() -> raced.loadTable(T).currentSnapshot())
            .isInstanceOf(TamperedException.class)
            .hasMessageContaining("its file was replaced while it was read");
      }
    }

    assertThat(TestLake.ids(reloaded())).containsExactly(1L);
  }

  // ---- a signature pins content

  @Test
  void onlyTheContentThatWasLookedAtIsSigned() throws IOException {
    Table table = table(Map.of());
    lake.openStock().loadTable(T).updateProperties().set("a", "b").commit();
    String location = metadata(lake.openStock().loadTable(T)).metadataFileLocation();
    Path file = TestLake.path(location);
    change(file, LATER.get("at the top"));
    String looked = sha256(file);
    assertRefused(
        "committed by a client that does not authenticate",
        location,
        "metadata_sha256 => '" + looked + "'");
    String genuine = text(file);
    assertThatThrownBy(() -> catalog.context().authenticateMetadata(T, location, null))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(
            "lake.db.t", "metadata_sha256 is missing", "metadata_sha256 => '" + looked + "'");
    assertThatThrownBy(() -> catalog.context().authenticateMetadata(T, location + "x", looked))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(location);
    edit(file, MetadataAuthenticationTest::dropSnapshots);
    assertThatThrownBy(() -> catalog.context().authenticateMetadata(T, location, looked))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was signed", looked, sha256(file));
    assertThat(metadata(lake.openStock().loadTable(T)).metadataFileLocation()).isEqualTo(location);
    replace(file, genuine);
    catalog.context().authenticateMetadata(T, location, " " + looked.toUpperCase(Locale.ROOT));
    assertThat(reloaded().properties()).containsEntry("a", "b");
    assertThat(TestLake.ids(reloaded())).containsExactly(1L);
    assertThat(TestLake.ids(table)).containsExactly(1L);
  }

  @Test
  void whatLostItsKeyIdAndKeysIsNotSigned() throws IOException {
    Table table = table(Map.of());
    Path file = file(table);
    change(
        file,
        json -> {
          json.getAsJsonObject("properties").remove("encryption.key-id");
          json.remove("encryption-keys");
        });
    String location = metadata(table).metadataFileLocation();
    assertThatThrownBy(() -> catalog.context().authenticateMetadata(T, location, sha256(file)))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "no encryption.key-id and no keys left", "backup");
  }

  /** Two tables that were loaded of one file, one after the other, and then used. */
  @Test
  void metadataIsNotCheckedByWhatAnotherWasLoadedFrom() throws IOException {
    Path file = file(table(Map.of()));
    JsonObject forged = CanonicalJson.parse(text(file));
    MetadataAuthenticationTest.dropSnapshots(forged);
    try (EncryptedCatalog raced = lake.open(Map.of("io-impl", Watched.class.getName()))) {
      Watched.give(file, forged.toString());
      Table first = raced.loadTable(T);
      Table second = raced.loadTable(T);
      assertThatThrownBy(first::currentSnapshot)
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("its file was replaced while it was read");
      assertThat(TestLake.ids(second)).containsExactly(1L);
    }
  }

  /** The catalog behind reads one content, and the hash is of another. */
  @Test
  void whatTheCatalogLoadedMustBeWhatWasHashed() throws IOException {
    table(Map.of());
    lake.openStock().loadTable(T).updateProperties().set("a", "b").commit();
    String location = metadata(lake.openStock().loadTable(T)).metadataFileLocation();
    Path file = TestLake.path(location);
    JsonObject forged = CanonicalJson.parse(text(file));
    MetadataAuthenticationTest.dropSnapshots(forged);
    try (EncryptedCatalog raced = lake.open(Map.of("io-impl", Watched.class.getName()))) {
      Watched.give(file, forged.toString());
      assertThatThrownBy(() -> raced.context().authenticateMetadata(T, location, sha256(file)))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("replaced while it was read", "nothing was signed");
    }

    assertThat(metadata(lake.openStock().loadTable(T)).metadataFileLocation()).isEqualTo(location);
  }

  // ---- costs

  @Test
  void anOrdinaryLoadReadsTheFileOnceAndACommitAsksNoKms() throws IOException {
    Table table = table(Map.of());
    Path file = file(table);
    try (EncryptedCatalog session = lake.open(Map.of("io-impl", Watched.class.getName()))) {
      Watched.count(file);
      Table loaded = session.loadTable(T);
      assertThat(TestLake.ids(loaded)).containsExactly(1L);
      assertThat(Watched.READS).hasValue(1);
      loaded.updateProperties().set("a", "b").commit();
      TestLake.append(loaded, 2);
      int looks = backend == Backend.HADOOP ? 2 : 0; // at its beginning: is it still this table's?
      assertThat(Watched.READS).hasValue(1 + looks);
      Map<String, Object> calls = session.context().kms().metrics().snapshot();
      assertThat(calls.get("unwrap_calls")).hasToString("1");
      assertThat(calls.get("wrap_calls")).hasToString("0");
    }

    Table again = reloaded();
    sign(file(again), kekId(again), LATER.get("at the top"));
    try (EncryptedCatalog session = lake.open(Map.of("io-impl", Watched.class.getName()))) {
      Watched.count(file(again));
      assertThat(TestLake.ids(session.loadTable(T))).containsExactly(1L, 2L);
      assertThat(Watched.READS).as("a later Iceberg's, too").hasValue(1);
    }
  }

  /** Storage that counts reads of one file, and returns other content to the first of them. */
  public static final class Watched extends HadoopFileIO {
    private static final long serialVersionUID = 1L;
    private static final AtomicInteger READS = new AtomicInteger();
    private static Path file;
    private static String first;

    private static void count(Path watched) {
      give(watched, null);
    }

    private static void give(Path watched, String content) {
      file = watched;
      first = content;
      READS.set(0);
    }

    @Override
    public InputFile newInputFile(String path) {
      if (!TestLake.path(path).equals(file)) {
        return super.newInputFile(path);
      }

      String content = first;
      first = null;
      READS.incrementAndGet();
      if (content == null) {
        return super.newInputFile(path);
      }

      InMemoryFileIO memory = new InMemoryFileIO();
      memory.addFile(path, content.getBytes(StandardCharsets.UTF_8));
      return memory.newInputFile(path);
    }
  }

  // ---- keys that retired

  private static void aged(JsonObject json, String kekId, long days) {
    long made = System.currentTimeMillis() - days * DAY;
    entry(json, kekId)
        .getAsJsonObject("properties")
        .addProperty(Kek.TIMESTAMP, String.valueOf(made));
  }

  @Test
  void aKekPastItsLifeSignsNoMore() throws IOException {
    Table table = table(Map.of());
    String kekId = kekId(table);
    sign(file(table), kekId, json -> aged(json, kekId, 729));
    assertThat(reloaded().schema().columns()).hasSize(2);
    sign(file(table), kekId, json -> aged(json, kekId, 731));
    assertRefused("after that KEK's lifetime", kekId);
  }

  /** As a table is that nobody wrote to for two years. */
  @Test
  void aCommitAfterTheKeksLifeMakesANewOne() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    String kekId = kekId(table);
    sign(
        file(table),
        kekId,
        json -> {
          aged(json, kekId, 731);
          json.addProperty("last-updated-ms", System.currentTimeMillis() - 730 * DAY);
          json.add("metadata-log", new JsonArray());
        });
    try (EncryptedCatalog session = lake.open(Map.of())) {
      Table loaded = session.loadTable(T);
      loaded.updateProperties().set("a", "b").commit();
      String newer = kekId(loaded);
      assertThat(newer).isNotEqualTo(kekId);
      TestLake.append(loaded, 2);
      assertThat(kekId(loaded)).isEqualTo(newer);
      assertThat(TestLake.ids(loaded)).containsExactly(2L);
      assertThat(session.context().kms().metrics().snapshot().get("wrap_calls")).hasToString("1");
    }

    Table again = reloaded();
    String signer = kekId(again);
    assertThat(TestLake.ids(again)).containsExactly(2L);
    sign(file(again), kekId, json -> {});
    assertRefused("made with KEK " + kekId, "which " + signer + " has replaced");
  }

  @Test
  void theNewestKekSignsWhateverItsPlace() throws IOException {
    Table table = table(Map.of());
    String kekId = kekId(table);
    TableMetadata metadata = metadata(table);
    EncryptedKey older =
        new BaseEncryptedKey(
            "older",
            catalog.context().kms().wrapKey(ByteBuffer.wrap(new byte[16]), "k1"),
            "k1",
            Map.of(Kek.TIMESTAMP, "1"));
    TableMetadata both =
        TableMetadata.buildFrom(metadata)
            .removeEncryptionKey(kekId)
            .addEncryptionKey(older)
            .addEncryptionKey(SigningKeys.find(metadata, "k1", kekId).orElseThrow())
            .build();
    assertThat(SigningKeys.live(both, "k1").orElseThrow().keyId()).isEqualTo(kekId);
    for (String timestamp : new String[] {"1", "x", "-9223372036854775808"}) {
      EncryptedKey odd =
          new BaseEncryptedKey(
              "odd", older.encryptedKeyMetadata(), "k1", Map.of(Kek.TIMESTAMP, timestamp));
      TableMetadata only =
          TableMetadata.buildFrom(metadata)
              .removeEncryptionKey(kekId)
              .addEncryptionKey(odd)
              .build();
      assertThat(SigningKeys.live(only, "k1")).isEmpty();
    }
  }

  // ---- master keys that do not say who wrapped

  /** A user's own KMS, that says nothing of its wrapping. */
  public static class Silent extends PlainKms {
    private static final long serialVersionUID = 1L;
    static final AtomicInteger CALLS = new AtomicInteger();

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      CALLS.incrementAndGet();
      return super.wrapKey(key, wrappingKeyId);
    }
  }

  /** One that knows: k1 is symmetric, k2 an RSA key. */
  public static final class Telling extends Silent implements AuthenticatedWrapping {
    private static final long serialVersionUID = 1L;

    @Override
    public boolean authenticatesWrapping(String wrappingKeyId) {
      return wrappingKeyId.equals("k1");
    }
  }

  private EncryptedCatalog with(Class<?> kms, String... more) throws IOException {
    Map<String, String> all = new LinkedHashMap<>(backend.encrypted(folder));
    all.put("encryption.kms-impl", kms.getName());
    for (int i = 0; i < more.length; i += 2) {
      all.put(more[i], more[i + 1]);
    }

    return new TestLake(backend, folder, all).open(Map.of());
  }

  @Test
  void aMasterKeyThatOthersCanWrapWithIsRefused() throws IOException {
    String off = "encryption.metadata-authentication";
    try (EncryptedCatalog required = with(Silent.class);
        EncryptedCatalog unsigned = with(Silent.class, off, "off")) {
      Silent.CALLS.set(0);
      assertThatThrownBy(() -> TestLake.createTable(required, "t", Map.of()))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll(
              "lake.db.t",
              "'k1'",
              "cannot be authenticated",
              off + "=off",
              "authenticated-wrapping");
      assertThatThrownBy(() -> required.context().checkMasterKey("k1"))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageStartingWith("Catalog lake: its metadata cannot be authenticated");
      unsigned.context().checkMasterKey("k1");
      assertThat(Silent.CALLS).as("nothing was asked").hasValue(0);
      assertThat(required.tableExists(T)).isFalse();

      Table table = TestLake.append(TestLake.createTable(unsigned, "t", Map.of()), 1);
      assertThat(status(table))
          .isEqualTo(new MetadataAuthentication(false, "the catalog has " + off + "=off"));
      Table loaded = required.loadTable(T);
      assertThatThrownBy(loaded::schema)
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.t", "cannot be authenticated");
      assertThatThrownBy(() -> loaded.newAppend())
          .isInstanceOf(InvalidConfigurationException.class);
      assertThatThrownBy(() -> required.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction())
          .isInstanceOf(InvalidConfigurationException.class);
      String location = metadata(table).metadataFileLocation();
      String sha256 = sha256(TestLake.path(location));
      assertThatThrownBy(() -> required.context().authenticateMetadata(T, location, sha256))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("cannot be authenticated");
      assertThat(metadata(table).metadataFileLocation()).isEqualTo(location);
    }
  }

  @Test
  void theClientOrTheUserSaysWhetherWrappingIsAuthenticated() throws IOException {
    String declared = "encryption.kms.authenticated-wrapping";
    try (EncryptedCatalog said = with(Silent.class, declared, "true");
        EncryptedCatalog knows = with(Telling.class)) {
      Table table = TestLake.append(TestLake.createTable(said, "t", Map.of()), 1);
      assertThat(TestLake.ids(knows.loadTable(T))).containsExactly(1L);
      assertThat(status(knows.loadTable(T)).authenticated()).isTrue();
      assertThatThrownBy(
              () -> TestLake.createTable(knows, "rsa", Map.of("encryption.key-id", "k2")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.rsa", "'k2'");
    }

    assertThatThrownBy(() -> with(Telling.class, declared, "true"))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll(declared, Telling.class.getName());
  }

  private static MetadataAuthentication status(Table table) {
    return EncryptedTable.metadataAuthentication(
        (BaseTable) table, ((BaseTable) table).operations().current());
  }

  @Test
  void aTableTellsWhetherItsMetadataIsAuthenticated() throws IOException {
    assertThat(status(table(Map.of())).authenticated()).isTrue();
    Table plain =
        catalog.buildTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA).create();
    assertThat(status(plain))
        .isEqualTo(new MetadataAuthentication(false, "the table is not encrypted"));
    Table stock = lake.openStock().loadTable(T);
    assertThat(status(stock).authenticated()).isFalse();
  }
}
