package io.icebergcrypto.kms.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.testing.Fuzz;

/** Hostile answers in the name of a KMS, and what must become of each. */
public final class FuzzedAnswers {
  private static final int[] STATUS = {200, 204, 301, 400, 401, 403, 404, 405, 409, 429, 500, 503};

  private FuzzedAnswers() {}

  public static JsonHttp.Answer answer(Fuzz round, String... valid) {
    return new JsonHttp.Answer(
        status(round), JsonHttp.object(round.mutated(round.oneOf(valid))), "");
  }

  public static int status(Fuzz round) {
    return STATUS[round.random().nextInt(STATUS.length)];
  }

  public static void hinted(IcebergCryptoException error) {
    assertThat(error.hint()).isNotBlank();
    assertThat(error.problem()).contains("k");
  }

  /** A refusal is always one of ours; whether its words were understood is what counts here. */
  public static boolean parsed(JsonHttp.Answer answer, IcebergCryptoException error) {
    hinted(error);
    return answer.body().size() > 0 && !(error instanceof BadWrappedKeyException);
  }
}
