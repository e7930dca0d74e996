package io.icebergcrypto.kms.call;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.LoginFailedException;
import java.nio.file.FileSystemException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Stream;
import javax.net.ssl.SSLPeerUnverifiedException;

/** What is below an error: libraries wrap the reason of a failure several times. */
public final class Causes {
  private Causes() {}

  /** The error and its causes, the innermost last. */
  public static Stream<Throwable> of(Throwable error) {
    return Stream.iterate(error, Objects::nonNull, Throwable::getCause);
  }

  /** Whether the error or one of its causes is like that. */
  public static boolean any(Throwable error, Predicate<Throwable> like) {
    return of(error).anyMatch(like);
  }

  /** The outermost error of this project, which says what to do. */
  public static Optional<IcebergCryptoException> typed(Throwable error) {
    return of(error)
        .filter(IcebergCryptoException.class::isInstance)
        .map(IcebergCryptoException.class::cast)
        .findFirst();
  }

  /** The innermost cause; the error itself if it has none. */
  public static Throwable root(Throwable error) {
    return of(error).reduce(error, (outer, inner) -> inner);
  }

  /** The innermost message; without any, the name of the error's class. */
  public static String innermostMessage(Throwable error) {
    return of(error)
        .map(Throwable::getMessage)
        .filter(Objects::nonNull)
        .reduce(error.toString(), (a, b) -> b);
  }

  /**
   * Whether an error says that a key may not be used, and not that a login failed, that the KMS
   * refuses more than this key, that it may have the key and lacks only a version of it, or that a
   * file of the KMS's settings cannot be read: these pass, and are no answer about the key.
   */
  public static boolean isOfKey(IcebergCryptoException error) {
    return !any(
        error,
        cause ->
            cause instanceof LoginFailedException
                || cause instanceof FileSystemException
                || cause instanceof KeyNotFoundException missing && !missing.isOfKey()
                || cause instanceof AccessDeniedException denied && !denied.isOfKey());
  }

  /**
   * Whether a connection failed because of the server's certificate, which no further attempt
   * fixes. A handshake also fails when the server goes away in the middle of it.
   */
  public static boolean isUntrusted(Throwable error) {
    return any(
        error,
        cause ->
            cause instanceof CertificateException
                || cause instanceof CertPathValidatorException
                || cause instanceof CertPathBuilderException
                || cause instanceof SSLPeerUnverifiedException);
  }
}
