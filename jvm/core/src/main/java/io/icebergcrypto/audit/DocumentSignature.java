package io.icebergcrypto.audit;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.format.Sha256;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.metadata.CanonicalJson;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Set;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The signature of a JSON document: its member {@code signature}. It is an HMAC-SHA-256 (RFC 2104)
 * over the document's canonical form ({@link CanonicalJson#canonical}), all but the MAC itself, so
 * that the time and the key's id are signed, too. Its key is random, used once, and stands in the
 * signature, wrapped by the KMS.
 *
 * <p>It proves that the document is unchanged since it was signed by someone who could use the
 * master key, to wrap or to unwrap. It is not a public-key signature: anyone who can check one can
 * also make one.
 */
public final class DocumentSignature {
  private static final String MEMBER = "signature";
  private static final String ALGORITHM = "HMAC-SHA-256";
  private static final Set<String> MEMBERS =
      Set.of("algorithm", "key_id", "wrapped_key", "signed_at", "mac");
  private static final int KEY_LENGTH = 32; // RFC 2104, section 3: the hash's length

  private DocumentSignature() {}

  /**
   * Signs a document.
   *
   * @param document a JSON object; a signature that it has is replaced
   * @param keyId the master key
   * @param allowed the master keys of the catalog
   * @return the signature, as JSON
   * @throws AccessDeniedException when the catalog does not allow that key
   * @throws InvalidConfigurationException when others can wrap under that key, as under RSA
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's typed error
   */
  public static String sign(
      String document, String keyId, AllowedKeyIds allowed, KeyManagementClient kms) {
    allowed.checkSigner(keyId);
    requireAuthenticatedWrapping(keyId, kms);
    byte[] key = new byte[KEY_LENGTH];
    new SecureRandom().nextBytes(key);
    try {
      ByteBuffer wrapped =
          UnwrapsAgain.wrappedOrDenied(forNoTable(kms), ByteBuffer.wrap(key), keyId);
      JsonObject signature = new JsonObject();
      signature.addProperty("algorithm", ALGORITHM);
      signature.addProperty("key_id", keyId);
      signature.addProperty(
          "wrapped_key", Base64.getEncoder().encodeToString(KeyCache.copyOf(wrapped)));
      signature.addProperty("signed_at", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
      byte[] mac = mac(parse(document), signature, key);
      signature.addProperty("mac", HexFormat.of().formatHex(mac));
      return CanonicalJson.canonical(signature);
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }

  /**
   * Checks that a document is as it was signed.
   *
   * @param keyId the master key that must have signed it; null: any that is allowed
   * @param allowed the master keys of the catalog, for when none is named
   * @throws AccessDeniedException when none is named, and the catalog does not allow the one that
   *     signed it
   * @throws TamperedException when it is not: it, its signature or its wrapped key was changed, or
   *     another master key signed it, or its signature has other members, which whoever signs could
   *     add
   * @throws InvalidConfigurationException when it has no signature, or one that proves nothing
   *     because others can wrap under the master key
   * @throws NotSupportedException when it is signed in a way that this version does not know
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's typed error: nothing is known
   */
  public static void check(
      String document, String keyId, AllowedKeyIds allowed, KeyManagementClient kms) {
    JsonObject signed = parse(document);
    if (!(signed.get(MEMBER) instanceof JsonObject signature)) {
      throw new InvalidConfigurationException(
          "It has no signature", "Only a report that was signed when it was made can be checked.");
    }

    if (!ALGORITHM.equals(text(signature, "algorithm"))) {
      throw new NotSupportedException(
          String.format("It is signed with '%s'", text(signature, "algorithm")),
          "This version checks " + ALGORITHM + " only. Use the version that signed it.");
    }

    if (!signature.keySet().equals(MEMBERS)) {
      throw changed("its signature does not have the members of a signature");
    }

    String signer = text(signature, "key_id");
    if (keyId != null && !keyId.equals(signer)) {
      throw changed(String.format("it is signed with master key '%s', not '%s'", signer, keyId));
    }

    if (keyId == null) {
      allowed.checkSigner(signer);
    }

    requireAuthenticatedWrapping(signer, kms);
    KeyManagementClient bound = forNoTable(kms);
    if (isSigned(signed, signature, signer, bound)) {
      return;
    }

    // before anyone is accused: the KMS may have been wrong once
    UnwrapsAgain.forget(bound, wrappedKey(signature), signer);
    if (!isSigned(signed, signature, signer, bound)) {
      throw changed("it is not what was signed");
    }
  }

  private static boolean isSigned(
      JsonObject document, JsonObject signature, String signer, KeyManagementClient kms) {
    byte[] key = unwrap(signature, signer, kms);
    try {
      byte[] told = HexFormat.of().parseHex(text(signature, "mac"));
      return key.length == KEY_LENGTH && MessageDigest.isEqual(told, mac(document, signature, key));
    } catch (IllegalArgumentException e) { // of HexFormat
      throw changed("its signature is damaged");
    } finally {
      Arrays.fill(key, (byte) 0);
    }
  }

  private static KeyManagementClient forNoTable(KeyManagementClient kms) {
    return new BoundKmsClient(CallContext.NO_TABLE, kms);
  }

  private static ByteBuffer wrappedKey(JsonObject signature) {
    try {
      return ByteBuffer.wrap(Base64.getDecoder().decode(text(signature, "wrapped_key")));
    } catch (IllegalArgumentException e) {
      throw changed("its signature is damaged");
    }
  }

  private static byte[] unwrap(JsonObject signature, String keyId, KeyManagementClient kms) {
    ByteBuffer wrapped = wrappedKey(signature);
    ByteBuffer unwrapped;
    try {
      unwrapped = kms.unwrapKey(wrapped, keyId);
    } catch (TamperedException e) {
      throw new BadWrappedKeyException(
          "The report is not genuine, or this is another KMS: " + e.problem(),
          "Check that the catalog has the KMS with which the report was signed. If it has, the"
              + " report was changed: do not rely on it.",
          e);
    }

    byte[] key = KeyCache.copyOf(unwrapped);
    if (unwrapped.hasArray()) {
      Arrays.fill(unwrapped.array(), (byte) 0); // a copy
    }

    return key;
  }

  private static byte[] mac(JsonObject document, JsonObject signature, byte[] key) {
    JsonObject signed = new JsonObject();
    document.entrySet().forEach(member -> signed.add(member.getKey(), member.getValue()));
    JsonObject withoutMac = new JsonObject();
    signature.entrySet().stream()
        .filter(member -> !member.getKey().equals("mac"))
        .forEach(member -> withoutMac.add(member.getKey(), member.getValue()));
    signed.add(MEMBER, withoutMac);
    try {
      ByteBuffer text =
          StandardCharsets.UTF_8
              .newEncoder() // half of a surrogate pair is an error, not a question mark
              .encode(CharBuffer.wrap(CanonicalJson.canonical(signed)));
      return Sha256.hmac(key, KeyCache.copyOf(text));
    } catch (CharacterCodingException e) {
      throw changed("it has text that is not Unicode");
    }
  }

  private static JsonObject parse(String document) {
    try {
      return CanonicalJson.parse(document);
    } catch (IllegalArgumentException e) {
      throw changed(e.getMessage());
    }
  }

  private static String text(JsonObject object, String name) {
    JsonElement value = object.get(name);
    if (value instanceof JsonPrimitive text && text.isString()) {
      return text.getAsString();
    }

    throw changed("its signature is damaged: no " + name);
  }

  private static TamperedException changed(String why) {
    return new TamperedException(
        "The report is not genuine: " + why,
        "It was changed after it was signed, or not signed by the key it names. Do not rely on it;"
            + " verify the table again.");
  }

  private static void requireAuthenticatedWrapping(String keyId, KeyManagementClient kms) {
    if (kms instanceof AuthenticatedWrapping client && client.authenticatesWrapping(keyId)) {
      return;
    }

    throw new InvalidConfigurationException(
        String.format(
            "A signature with master key '%s' would prove nothing: %s does not prove who wrapped a"
                + " key with it (as with RSA, whose public half wraps)",
            keyId, kms),
        String.format(
            "Use a symmetric master key. If you have your own KMS client, and only users of the key"
                + " can wrap with it, set %s=true.",
            KmsProperties.AUTHENTICATED_WRAPPING));
  }
}
