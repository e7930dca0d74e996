package io.icebergcrypto.io.cipher;

import io.icebergcrypto.kms.call.Causes;
import java.security.GeneralSecurityException;
import java.security.Provider;
import java.security.Security;
import java.util.Arrays;
import java.util.List;
import javax.crypto.Cipher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The cipher of files. Iceberg and Parquet ask Java for it by its name, and get that of the first
 * provider that has one. Where that is Java's own, and Amazon Corretto Crypto Provider (ACCP) is on
 * the class path and works, ACCP's takes its place in this JVM. A provider that was put before
 * Java's own stays the first.
 */
public final class AesGcm {
  static final String NAME = "AES/GCM/NoPadding";

  /** System property: false leaves Java's providers as they are. */
  static final String SWITCH = "iceberg-crypto.use-accp";

  private static final Logger LOG = LoggerFactory.getLogger(AesGcm.class);
  private static final String JAVAS_OWN = "SunJCE";
  private static final String ACCP =
      "com/amazon/corretto/crypto/provider/AmazonCorrettoCryptoProvider.class";

  static {
    choose(); // once a JVM
  }

  private AesGcm() {}

  /**
   * Chooses the provider before the first file is encrypted or decrypted: all that opens files
   * calls it.
   */
  public static void prepare() {
    // the class is initialized
  }

  /** The name of the provider whose cipher encrypts and decrypts files. */
  public static String provider() {
    try {
      return Cipher.getInstance(NAME).getProvider().getName();
    } catch (GeneralSecurityException e) {
      return "no provider";
    }
  }

  static void choose() {
    if (AesGcm.class.getClassLoader().getResource(ACCP) == null
        || !Boolean.parseBoolean(System.getProperty(SWITCH, "true"))
        || !provider().equals(JAVAS_OWN)) {
      return;
    }

    try {
      Provider accp = CorrettoCipher.healthy();
      List<Provider> all = Arrays.asList(Security.getProviders());
      Security.insertProviderAt(accp, all.indexOf(Security.getProvider(JAVAS_OWN)) + 1);
      LOG.info("{} of {} encrypts and decrypts files", NAME, provider());
    } catch (RuntimeException | LinkageError | AssertionError e) {
      LOG.warn(
          "Amazon Corretto Crypto Provider is on the class path and does not work: {}. Files are"
              + " encrypted and decrypted by {}, which is slower. Use the jar for this platform, {}"
              + " on {}; if it is that, let it load a library from java.io.tmpdir, or from another"
              + " folder, with -Dcom.amazon.corretto.crypto.provider.tmpdir=FOLDER. -D{}=false ends"
              + " this warning.",
          Causes.root(e),
          provider(),
          System.getProperty("os.name"),
          System.getProperty("os.arch"),
          SWITCH);
    }
  }
}
