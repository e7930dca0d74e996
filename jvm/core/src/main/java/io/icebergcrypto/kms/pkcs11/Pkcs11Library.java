package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.security.Provider;
import java.security.ProviderException;
import java.security.Security;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;

/** A PKCS#11 library (a .so file), opened by the JDK's SunPKCS11 provider. */
final class Pkcs11Library {
  private static final String SUN_PKCS11 = "SunPKCS11";

  // what has a meaning of its own in SunPKCS11's configuration
  private static final Pattern UNUSABLE = Pattern.compile("[\"\\\\$\\p{Cntrl}]");
  private static final AtomicInteger OPENED = new AtomicInteger();

  private Pkcs11Library() {}

  /**
   * Checks a library's path, without looking for it.
   *
   * @throws InvalidConfigurationException when SunPKCS11 could not take it
   */
  static void requireUsable(String path, String property) {
    if (!path.startsWith("/") || UNUSABLE.matcher(path).find()) {
      throw new InvalidConfigurationException(
          String.format("Property %s is not a path that can be used: '%s'", property, path),
          "Give the absolute path of the HSM's PKCS#11 library, without quotes, backslashes or $.");
    }
  }

  /**
   * Makes a provider for one slot. It is not registered: only who holds it uses it.
   *
   * @param slot {@code slot = ID} or {@code slotListIndex = N}, and further lines of configuration
   * @throws NotSupportedException when this Java cannot do PKCS#11
   * @throws ProviderException when the library or the slot cannot be used
   */
  static Provider open(String library, String slot) {
    return sunPkcs11()
        .configure(
            String.format(
                "--name = iceberg-crypto-%d\nlibrary = \"%s\"\n%s\n",
                OPENED.incrementAndGet(), library, slot));
  }

  private static Provider sunPkcs11() {
    Provider listed = Security.getProvider(SUN_PKCS11);
    if (listed != null) {
      return listed;
    }

    // not among java.security's providers, yet perhaps in this Java
    for (Provider provider :
        ServiceLoader.load(Provider.class, ClassLoader.getSystemClassLoader())) {
      if (provider.getName().equals(SUN_PKCS11)) {
        return provider;
      }
    }

    throw new NotSupportedException(
        String.format(
            "This Java (%s) has no PKCS#11: its module jdk.crypto.cryptoki is missing",
            System.getProperty("java.home")),
        "Run Spark on a full JDK or JRE 17, or add jdk.crypto.cryptoki to the modules of your"
            + " jlink image.");
  }
}
