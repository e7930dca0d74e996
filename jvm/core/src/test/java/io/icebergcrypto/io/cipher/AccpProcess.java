package io.icebergcrypto.io.cipher;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.spark.verify.deep.FileKey;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.NoKms;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.security.Signature;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLContext;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/** A process with ACCP on its class path. It prints what it finds, with {@link #MARK} in front. */
final class AccpProcess {
  static final String MARK = "found: ";
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;
  private static final int[] KEY_LENGTHS = {16, 24, 32};
  private static final long[] IDS = LongStream.range(0, 3000).toArray();

  private final Random random = new Random(1);
  private final TestLake lake;

  private AccpProcess(Path folder) {
    this.lake = new TestLake(Backend.HADOOP, folder, TestKeystore.existing(folder).properties());
  }

  /** Arguments: what is used first, and a folder, which has a keystore, if files are written. */
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "tables" -> manager();
      case "columns" -> new ParquetCryptoFactory();
      case "verification" ->
          FileKey.of(
              new InMemoryInputFile(new byte[0]),
              new StandardEncryptionManager(List.of(), "k1", 16, new NoKms())
                  .encrypt(new InMemoryOutputFile())
                  .keyMetadata()
                  .buffer());
      default -> throw new IllegalArgumentException(args[0]);
    }

    // AesGcm itself would choose one now
    say("first %s", Cipher.getInstance("AES/GCM/NoPadding").getProvider().getName());
    if (args.length > 1) {
      choices();
      AccpProcess process = new AccpProcess(Path.of(args[1]));
      process.ciphertexts();
      process.streams();
      for (String format : List.of("avro", "parquet")) {
        process.tables(format);
      }
    }
  }

  private static void say(String format, Object... arguments) {
    System.out.println(MARK + String.format(format, arguments));
  }

  private static void choices() throws GeneralSecurityException {
    Security.removeProvider(CorrettoCipher.NAME);
    List<String> first = providers();
    List<String> others = others();
    System.setProperty(AesGcm.SWITCH, "false");
    AesGcm.choose();
    say("switched off: %s, the same providers %b", AesGcm.provider(), providers().equals(first));
    System.clearProperty(AesGcm.SWITCH);

    Security.insertProviderAt(new Another(), 1);
    List<String> withAnother = providers();
    AesGcm.choose();
    say("another first: %s, the same %b", AesGcm.provider(), providers().equals(withAnother));
    Security.removeProvider(Another.NAME);

    for (int i = 0; i < 2; i++) {
      AesGcm.choose();
      List<String> now = providers();
      int before = now.indexOf(CorrettoCipher.NAME) + 1;
      say(
          "chosen: %s, before %s, %d more",
          AesGcm.provider(), now.get(before), now.size() - first.size());
    }

    say("others the same %b", others().equals(others));
  }

  private static List<String> providers() {
    return Arrays.stream(Security.getProviders()).map(Provider::getName).toList();
  }

  /** Who does everything else. */
  private static List<String> others() throws GeneralSecurityException {
    return Stream.of(
            MessageDigest.getInstance("SHA-256").getProvider(),
            Mac.getInstance("HmacSHA256").getProvider(),
            new SecureRandom().getProvider(),
            KeyStore.getInstance("PKCS12").getProvider(),
            Signature.getInstance("SHA256withECDSA").getProvider(),
            KeyAgreement.getInstance("ECDH").getProvider(),
            SSLContext.getDefault().getProvider(),
            Cipher.getInstance("AES/CBC/PKCS5Padding").getProvider(),
            Cipher.getInstance("AES/CTR/NoPadding").getProvider())
        .map(Provider::getName)
        .toList();
  }

  /** A site's own choice. */
  private static final class Another extends Provider {
    private static final String NAME = "Another";
    private static final long serialVersionUID = 1L;

    private Another() {
      super(NAME, "1", NAME);
      Service javas = Security.getProvider("SunJCE").getService("Cipher", AesGcm.NAME);
      putService(
          new Service(this, "Cipher", AesGcm.NAME, NAME, List.of(), Map.of()) {
            @Override
            public Object newInstance(Object parameter) throws NoSuchAlgorithmException {
              return javas.newInstance(parameter);
            }
          });
    }
  }

  private enum By {
    ACCP("AmazonCorrettoCryptoProvider"),
    JAVA("SunJCE");

    private final String provider;

    By(String provider) {
      this.provider = provider;
    }

    private void use() {
      Security.removeProvider(CorrettoCipher.NAME);
      if (this == ACCP) {
        AesGcm.choose();
      }

      if (!AesGcm.provider().equals(provider)) {
        throw new IllegalStateException(AesGcm.provider() + " in place of " + provider);
      }
    }
  }

  /** The same key, nonce and plaintext make the same bytes. */
  private void ciphertexts() throws GeneralSecurityException {
    boolean same = true;
    int count = 0;
    for (int keyLength : KEY_LENGTHS) {
      for (int length : new int[] {0, 1, 15, 16, 17, 4096, BLOCK, BLOCK + 1}) {
        SecretKeySpec key = new SecretKeySpec(bytes(keyLength), "AES");
        byte[] nonce = bytes(12);
        byte[] aad = bytes(24);
        byte[] plain = bytes(length);
        byte[] byAccp = encrypt(By.ACCP, key, nonce, aad, plain);
        same &= Arrays.equals(byAccp, encrypt(By.JAVA, key, nonce, aad, plain));
        count++;
      }
    }

    say("%d ciphertexts are the same: %b", count, same);
  }

  private static byte[] encrypt(By by, SecretKeySpec key, byte[] nonce, byte[] aad, byte[] plain)
      throws GeneralSecurityException {
    by.use();
    Cipher cipher = Cipher.getInstance(AesGcm.NAME);
    cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(128, nonce));
    cipher.updateAAD(aad);
    return cipher.doFinal(plain);
  }

  private byte[] bytes(int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  private record Written(byte[] plain, byte[] stored, NativeEncryptionOutputFile file) {}

  /** AES GCM streams of several blocks. */
  private void streams() throws IOException {
    int read = 0;
    boolean same = true;
    for (By writer : By.values()) {
      for (int length : new int[] {0, 1, BLOCK, 2 * BLOCK + 77}) {
        Written written = write(writer, length);
        for (By reader : By.values()) {
          same &= Arrays.equals(read(reader, written, written.stored), written.plain);
          read++;
        }
      }
    }

    say("%d streams are read: %b", read, same);
    Written written = write(By.ACCP, 2 * BLOCK);
    for (int at : new int[] {8, 30, 8 + BLOCK + 27, written.stored.length - 1}) {
      byte[] flipped = written.stored.clone();
      flipped[at] ^= 1;
      say("byte %d of a stream: %s", at, errors(by -> read(by, written, flipped)));
    }
  }

  private Written write(By by, int length) throws IOException {
    by.use();
    byte[] plain = bytes(length);
    InMemoryOutputFile target = new InMemoryOutputFile("file");
    NativeEncryptionOutputFile file = manager().encrypt(target);
    try (PositionOutputStream out = file.encryptingOutputFile().create()) {
      out.write(plain);
    }

    return new Written(plain, target.toByteArray(), file);
  }

  private static byte[] read(By by, Written written, byte[] stored) throws IOException {
    by.use();
    InMemoryInputFile file = new InMemoryInputFile("file", stored);
    try (SeekableInputStream in =
        manager()
            .decrypt(
                EncryptedFiles.encryptedInput(
                    file, written.file.keyMetadata().copyWithLength(stored.length).buffer()))
            .newStream()) {
      return in.readAllBytes();
    }
  }

  private static TableEncryptionManager manager() {
    return new TableEncryptionManager("lake.db.t", List.of(), "k1", 16, new NoKms());
  }

  /** Tables with data keys of each length. */
  private void tables(String format) throws IOException {
    int read = 0;
    boolean same = true;
    Table table = null;
    for (int keyLength : KEY_LENGTHS) {
      for (By writer : By.values()) {
        writer.use();
        table =
            TestLake.append(
                TestLake.createTable(
                    lake.open(Map.of()),
                    format + keyLength + writer,
                    Map.of(
                        "write.format.default",
                        format,
                        "encryption.data-key-length",
                        String.valueOf(keyLength))),
                IDS);
        for (By reader : By.values()) {
          same &= LongStream.of(IDS).boxed().toList().equals(rows(reader, table.name()));
          read++;
        }
      }
    }

    say("%d %s tables are read: %b", read, format, same);
    for (Path file : TestLake.files(table)) {
      damage(format, table.name(), file);
    }
  }

  private List<Long> rows(By by, String name) throws IOException {
    by.use();
    Catalog catalog = lake.open(Map.of());
    return TestLake.rows(
        catalog.loadTable(
            TableIdentifier.of(TestLake.DB, name.substring(name.lastIndexOf('.') + 1))));
  }

  private void damage(String format, String name, Path file) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc")); // Hadoop's own
    byte[] whole = Files.readAllBytes(file);
    for (int third = 1; third <= 2; third++) {
      byte[] flipped = whole.clone();
      flipped[whole.length * third / 3] ^= 1;
      Files.write(file, flipped);
      say("%s, %d/3 of %s: %s", format, third, TestLake.magic(file), errors(by -> rows(by, name)));
    }

    Files.write(file, whole);
  }

  @FunctionalInterface
  private interface Reading {
    Object by(By reader) throws IOException;
  }

  /** What each reader throws; the code alone if it is the same. */
  private static String errors(Reading reading) {
    List<String> errors =
        Stream.of(By.values()).map(by -> errorOf(reading, by)).distinct().toList();
    return errors.size() == 1 ? errors.get(0).replaceFirst("(?s): .*", "") : errors.toString();
  }

  private static String errorOf(Reading reading, By reader) {
    try {
      reading.by(reader);
      return "nothing";
    } catch (TamperedException e) {
      return e.code() + ": " + e.getMessage();
    } catch (IOException | RuntimeException e) {
      return e.toString();
    }
  }
}
