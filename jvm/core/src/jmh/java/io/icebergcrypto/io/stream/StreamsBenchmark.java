package io.icebergcrypto.io.stream;

import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.io.checked.AuthenticatedStream;
import io.icebergcrypto.io.checked.ExpectedFile;
import io.icebergcrypto.io.cipher.AesGcm;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.util.ByteBuffers;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * AES GCM streams of files of several lengths, in memory: ours and Iceberg's. Beside them, the same
 * blocks by the same cipher without a stream: from and to arrays ("cipher"), or read from the file
 * and written to it ("raw"), as a reader of files has to.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class StreamsBenchmark {
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;
  private static final int STORED_BLOCK = BLOCK + Ags1Layout.BLOCK_OVERHEAD;
  private static final int NONCE = Ciphers.NONCE_LENGTH;
  private static final int TAG_BITS = 128;
  private static final int RANGE = 4096;

  /** Which implementation reads and writes. */
  @Param({"cipher", "raw", "ours", "iceberg"})
  public String streams;

  /** Of the plaintext, in bytes. */
  @Param({"4096", "1048576", "134217728"})
  public int length;

  /** Parts that are read and written at once, in bytes; less when the file is shorter. */
  @Param({"8192", "1048576"})
  public int part;

  /** Whether Amazon Corretto Crypto Provider's cipher is used, in place of Java's own. */
  @Param({"false"})
  public boolean accp;

  private final Random random = new Random(1);
  private final SecureRandom nonces = new SecureRandom();
  private NativeEncryptionKeyMetadata key;
  private NativeEncryptionInputFile iceberg;
  private InputFile stored;
  private byte[] storedBytes;
  private NativeEncryptionOutputFile output;
  private byte[] buffer;
  private byte[] range;
  private byte[] block;
  private byte[] encrypted;
  private BlockAad aad;

  /** Writes the file. */
  @Setup
  public void write() throws IOException {
    System.setProperty("iceberg-crypto.use-accp", String.valueOf(accp));
    AesGcm.prepare(); // before the first cipher of this JVM: JMH starts one for each choice
    StandardEncryptionManager manager =
        new StandardEncryptionManager(List.of(), "k1", 16, new InMemory.NoKms());
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile file = manager.encrypt(target);
    byte[] content = new byte[Math.min(length, BLOCK)];
    random.nextBytes(content);
    try (PositionOutputStream out = file.encryptingOutputFile().create()) {
      for (int done = 0; done < length; done += content.length) {
        out.write(content);
      }
    }

    this.storedBytes = target.toByteArray();
    this.stored = new InMemoryInputFile(storedBytes);
    this.key = file.keyMetadata().copyWithLength(storedBytes.length);
    this.iceberg = manager.decrypt(EncryptedFiles.encryptedInput(stored, key.buffer()));
    this.output = manager.encrypt(new InMemory.Discarding());
    this.buffer = new byte[Math.min(length, part)];
    this.range = new byte[Math.min(length, RANGE)];
    this.block = new byte[Math.min(length, BLOCK)];
    this.encrypted = new byte[STORED_BLOCK];
    this.aad = new BlockAad(key.aadPrefix());
    warmUp();
  }

  /** Has the JVM compile the cipher: blocks of each length on their own, as it takes them apart. */
  private void warmUp() {
    warmUp(RANGE, 50_000);
    if (length >= BLOCK) {
      warmUp(BLOCK, 1_000);
    }
  }

  private static void warmUp(int length, int times) {
    Ciphers.AesGcmEncryptor encryptor = new Ciphers.AesGcmEncryptor(new byte[16]);
    Ciphers.AesGcmDecryptor decryptor = new Ciphers.AesGcmDecryptor(new byte[16]);
    for (int i = 0; i < times; i++) {
      decryptor.decrypt(encryptor.encrypt(new byte[length], null), null);
    }
  }

  /** Opens the file, reads all of it, part by part. */
  @Benchmark
  public long read() throws IOException, GeneralSecurityException {
    if (isBare()) {
      return decrypt(0, (length - 1) / BLOCK);
    }

    long sum = 0;
    try (SeekableInputStream in = open()) {
      for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
        sum += count + buffer[0];
      }
    }

    return sum;
  }

  /** Opens the file, and reads 4 KB anywhere, as of one block. */
  @Benchmark
  public long range() throws IOException, GeneralSecurityException {
    long from = length <= RANGE ? 0 : random.nextInt(length / RANGE) * (long) RANGE;
    if (isBare()) {
      return decrypt(from / BLOCK, from / BLOCK);
    }

    try (SeekableInputStream in = open()) {
      if (in instanceof RangeReadable ranges) {
        ranges.readFully(from, range);
      } else {
        in.seek(from);
        in.readNBytes(range, 0, range.length);
      }
    }

    return range[0];
  }

  /** Writes a file, part by part. */
  @Benchmark
  public long writeAll() throws IOException, GeneralSecurityException {
    if (isBare()) {
      return encrypt();
    }

    OutputFile file =
        (streams.equals("ours")
                ? new EncryptedOutput(output, () -> {}, stream -> stream, any -> any)
                : output)
            .encryptingOutputFile();
    try (PositionOutputStream out = file.create()) {
      for (int done = 0; done < length; done += buffer.length) {
        out.write(buffer, 0, Math.min(buffer.length, length - done));
      }

      return out.getPos();
    }
  }

  private SeekableInputStream open() {
    return streams.equals("iceberg")
        ? iceberg.newStream()
        : new AuthenticatedStream(
            stored.newStream(),
            Ags1Layout.ofLength(storedBytes.length, "file"),
            key,
            new ExpectedFile(null, "file", (long) storedBytes.length));
  }

  private boolean isBare() {
    return streams.equals("cipher") || streams.equals("raw");
  }

  private long decrypt(long first, long last) throws GeneralSecurityException, IOException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    SecretKeySpec secret = new SecretKeySpec(ByteBuffers.toByteArray(key.encryptionKey()), "AES");
    long sum = 0;
    try (SeekableInputStream in = stored.newStream()) {
      for (long index = first; index <= last; index++) {
        int at = (int) (Ags1Layout.HEADER_LENGTH + index * STORED_BLOCK);
        int count = Math.min(STORED_BLOCK, storedBytes.length - at);
        byte[] from = storedBytes;
        if (streams.equals("raw")) {
          in.seek(at);
          in.readNBytes(encrypted, 0, count);
          from = encrypted;
          at = 0;
        }

        cipher.init(Cipher.DECRYPT_MODE, secret, new GCMParameterSpec(TAG_BITS, from, at, NONCE));
        cipher.updateAAD(aad.of(index));
        sum += cipher.doFinal(from, at + NONCE, count - NONCE, block, 0);
      }
    }

    return sum;
  }

  private long encrypt() throws GeneralSecurityException, IOException {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    SecretKeySpec secret = new SecretKeySpec(ByteBuffers.toByteArray(key.encryptionKey()), "AES");
    byte[] nonce = new byte[NONCE];
    try (PositionOutputStream out = output.plainOutputFile().create()) {
      for (long index = 0; index <= (length - 1) / BLOCK; index++) {
        nonces.nextBytes(nonce);
        System.arraycopy(nonce, 0, encrypted, 0, NONCE);
        cipher.init(Cipher.ENCRYPT_MODE, secret, new GCMParameterSpec(TAG_BITS, nonce));
        cipher.updateAAD(aad.of(index));
        out.write(encrypted, 0, cipher.doFinal(block, 0, block.length, encrypted, NONCE) + NONCE);
      }

      return out.getPos();
    }
  }
}
