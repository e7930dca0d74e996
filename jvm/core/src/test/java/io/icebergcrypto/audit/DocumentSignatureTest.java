package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.testing.FailingKms;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.XorKms;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What others must be able to compute again, and what a signature refuses. */
class DocumentSignatureTest {
  private static final String DOCUMENT =
      "{ 'ok': true, 'table': 'lake.db.\u00fc', 'seconds': 1.50, 'ids': [9007199254740993],"
              .replace('\'', '"')
          + " \"signature\": null }";

  private static final AllowedKeyIds ANY = AllowedKeyIds.parse(null);

  @TempDir private static Path folder;
  private static CachingKmsClient kms;
  private static CachingKmsClient otherKms;

  @BeforeAll
  static void makeKeys() throws Exception {
    kms = open("here");
    otherKms = open("there");
  }

  private static CachingKmsClient open(String name) throws Exception {
    Path place = Files.createDirectory(folder.resolve(name));
    return KmsClients.create(TestKeystore.create(place, "k1", "k2").properties());
  }

  @AfterAll
  static void close() {
    kms.close();
    otherKms.close();
  }

  private static JsonObject signed() {
    JsonObject document = JsonParser.parseString(DOCUMENT).getAsJsonObject();
    document.add(
        "signature", JsonParser.parseString(DocumentSignature.sign(DOCUMENT, "k1", ANY, kms)));
    return document;
  }

  @Test
  void theCodeIsAsAnotherProgramComputesIt() throws Exception {
    JsonObject signature =
        JsonParser.parseString(DocumentSignature.sign(DOCUMENT, "k1", ANY, kms)).getAsJsonObject();
    byte[] wrapped = Base64.getDecoder().decode(signature.get("wrapped_key").getAsString());
    ByteBuffer key = kms.unwrapKey(ByteBuffer.wrap(wrapped), "k1");
    byte[] bytes = new byte[key.remaining()];
    key.get(bytes);
    assertThat(bytes).hasSize(32);
    String canonical =
        String.format(
                "{'ids':[9007199254740993],'ok':true,'seconds':1.50,'signature':{'algorithm':"
                    + "'HMAC-SHA-256','key_id':'k1','signed_at':'%s','wrapped_key':'%s'},"
                    + "'table':'lake.db.\u00fc'}",
                signature.get("signed_at").getAsString(),
                signature.get("wrapped_key").getAsString())
            .replace('\'', '"');
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(bytes, "HmacSHA256"));
    byte[] expected = mac.doFinal(canonical.getBytes(StandardCharsets.UTF_8));
    assertThat(signature.get("mac").getAsString()).isEqualTo(HexFormat.of().formatHex(expected));
  }

  @Test
  void whatWasSignedIsGenuineHoweverItIsLaidOut() throws Exception {
    String text = signed().toString();
    assertThatCode(() -> DocumentSignature.check(text, null, ANY, kms)).doesNotThrowAnyException();
    String laidOut = text.replace(",\"", ",\n  \"").replace("\u00fc", "\\u00fc");
    try (CachingKmsClient asked = // with nothing in its cache
        KmsClients.create(TestKeystore.existing(folder.resolve("here")).properties())) {
      DocumentSignature.check(laidOut, "k1", ANY, asked);
      assertThat(asked.metrics().snapshot()).containsEntry("unwrap_calls", 1L);
    }
  }

  @Test
  void eachChangeIsFound() {
    refused(document -> document.addProperty("ok", false));
    refused(document -> document.addProperty("ok", "true"));
    refused(document -> document.addProperty("more", 1));
    refused(document -> document.remove("table"));
    for (String member : new String[] {"key_id", "signed_at", "wrapped_key", "mac"}) {
      refused(document -> signature(document).addProperty(member, "k2"));
      refused(document -> signature(document).addProperty(member, 1));
      refused(document -> signature(document).remove(member));
    }

    refused(document -> signature(document).addProperty("more", "x"));
    refused(document -> signature(document).addProperty("mac", ""));
    refused(document -> signature(document).addProperty("wrapped_key", "*"));
    refused(document -> signature(document).addProperty("mac", "0".repeat(64)));
    refused(document -> document.addProperty("table", "\ud800"));
    String twice = signed().toString().replaceFirst("\\{", "{\"ok\":true,");
    assertThatThrownBy(() -> DocumentSignature.check(twice, null, ANY, kms))
        .isInstanceOf(TamperedException.class);
  }

  /** Whoever signs can put members into a signature, and make the MAC over them, too. */
  @Test
  void aSignatureSaysNothingMore() throws Exception {
    JsonObject document = signed();
    JsonObject signature = signature(document);
    byte[] wrapped = Base64.getDecoder().decode(signature.get("wrapped_key").getAsString());
    ByteBuffer key = kms.unwrapKey(ByteBuffer.wrap(wrapped), "k1");
    byte[] bytes = new byte[key.remaining()];
    key.get(bytes);
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(bytes, "HmacSHA256"));
    signature.addProperty("kind", "good");
    signature.remove("mac");
    String canonical = CanonicalJson.canonical(document);
    byte[] made = mac.doFinal(canonical.getBytes(StandardCharsets.UTF_8));
    signature.addProperty("mac", HexFormat.of().formatHex(made));
    String text = document.toString();
    assertThatThrownBy(() -> DocumentSignature.check(text, null, ANY, kms))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("does not have the members of a signature");
  }

  private static void refused(Consumer<JsonObject> change) {
    JsonObject document = signed();
    change.accept(document);
    assertThatThrownBy(() -> DocumentSignature.check(document.toString(), null, ANY, kms))
        .as(document.toString())
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("The report is not genuine");
  }

  private static JsonObject signature(JsonObject document) {
    return document.getAsJsonObject("signature");
  }

  @Test
  void anotherMasterKeyOrKmsIsFound() {
    String text = signed().toString();
    assertThatThrownBy(() -> DocumentSignature.check(text, "k2", ANY, kms))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("it is signed with master key 'k1', not 'k2'");
    assertThatThrownBy(() -> DocumentSignature.check(text, "k1", ANY, otherKms))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("or this is another KMS");
  }

  /** Such as a KEK of 128 bits. */
  @Test
  void aKeyThatWasWrappedForSomethingElseIsRefused() {
    byte[] wrapped = kms.wrapKey(ByteBuffer.wrap(new byte[16]), "k1").array();
    String encoded = Base64.getEncoder().encodeToString(wrapped);
    JsonObject document = signed();
    signature(document).addProperty("wrapped_key", encoded);
    assertThatThrownBy(() -> DocumentSignature.check(document.toString(), null, ANY, kms))
        .isInstanceOf(TamperedException.class);
  }

  @Test
  void whatCannotBeCheckedIsNoFinding() {
    assertThatThrownBy(() -> DocumentSignature.check(DOCUMENT, null, ANY, kms))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("no signature");
    JsonObject document = signed();
    signature(document).addProperty("algorithm", "Ed25519");
    assertThatThrownBy(() -> DocumentSignature.check(document.toString(), null, ANY, kms))
        .isInstanceOf(NotSupportedException.class);
    FailingKms down =
        new FailingKms() {
          @Override
          protected RuntimeException failure() {
            return new KmsUnavailableException("It does not answer", "Start it.");
          }
        };
    String text = signed().toString();
    assertThatThrownBy(() -> DocumentSignature.check(text, null, ANY, down))
        .isInstanceOf(KmsUnavailableException.class);
    assertThatThrownBy(() -> DocumentSignature.sign(DOCUMENT, "k1", ANY, down))
        .isInstanceOf(KmsUnavailableException.class);
  }

  @Test
  void onlyKeysThatTheCatalogAllows() {
    AllowedKeyIds others = AllowedKeyIds.parse("audit, k2");
    FailingKms unasked =
        new FailingKms() {
          @Override
          protected RuntimeException failure() {
            return new IllegalStateException("the KMS was asked");
          }
        };
    String text = signed().toString();
    List<ThrowingCallable> refused =
        List.of(
            () -> DocumentSignature.sign(DOCUMENT, "k1", others, unasked),
            () -> DocumentSignature.check(text, null, others, unasked));
    for (ThrowingCallable call : refused) {
      assertThatThrownBy(call)
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("master key 'k1'")
          .hasMessageContaining("allows only audit, k2 (encryption.allowed-key-ids)")
          .hasMessageContaining("hint: Sign with one of these");
    }

    // an old report, whose key the caller vouches for
    assertThatCode(() -> DocumentSignature.check(text, "k1", others, kms))
        .doesNotThrowAnyException();
  }

  @Test
  void aKeyWithWhichOthersCanWrapIsRefused() {
    FailingKms rsa =
        new FailingKms() {
          @Override
          protected RuntimeException failure() {
            return new IllegalStateException("the KMS was asked");
          }

          @Override
          public boolean authenticatesWrapping(String wrappingKeyId) {
            return false;
          }
        };
    assertThatThrownBy(() -> DocumentSignature.sign(DOCUMENT, "k1", ANY, rsa))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("would prove nothing");
    String text = signed().toString();
    assertThatThrownBy(() -> DocumentSignature.check(text, null, ANY, rsa))
        .isInstanceOf(InvalidConfigurationException.class);
  }

  private static CachingKmsClient xorKms() {
    return KmsClients.create(
        Map.of(
            "encryption.kms-impl",
            XorKms.class.getName(),
            "encryption.kms.authenticated-wrapping",
            "true"));
  }

  @Test
  void oneWrongAnswerAccusesNobody() throws Exception {
    CachingKmsClient asked = xorKms();
    XorKms.answer(XorKms.WRONG_KEY);
    assertThatThrownBy(() -> DocumentSignature.sign(DOCUMENT, "k1", ANY, asked))
        .as("nobody could check it")
        .isInstanceOf(BadWrappedKeyException.class);

    JsonObject document = JsonParser.parseString(DOCUMENT).getAsJsonObject();
    document.add(
        "signature", JsonParser.parseString(DocumentSignature.sign(DOCUMENT, "k1", ANY, asked)));
    String text = document.toString();
    for (byte[] wrong : List.of(XorKms.WRONG_KEY, new byte[32], new byte[0])) {
      try (CachingKmsClient fresh = xorKms()) {
        XorKms.answer(wrong);
        assertThatCode(() -> DocumentSignature.check(text, "k1", ANY, fresh))
            .doesNotThrowAnyException();
        assertThat(XorKms.answersLeft()).isZero();
      }
    }
  }
}
