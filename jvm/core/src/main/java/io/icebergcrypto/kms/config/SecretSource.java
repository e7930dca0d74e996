package io.icebergcrypto.kms.config;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;

/**
 * Where a secret is: in an environment variable or in a file. This is what a client keeps and what
 * travels to executors; the secret itself is read when it is needed, and again when it may have
 * changed. Equal ones are the same place, which need not have the same secret.
 *
 * @param property names the place
 * @param variable null: it is in a file
 * @param file null: it is in a variable
 * @param mayBeProjected whether it is a JWT, which Kubernetes may put there
 * @param advice the end of the hint when the file is open to others
 */
public record SecretSource(
    String property, String variable, String file, boolean mayBeProjected, String advice)
    implements Serializable {
  private static final int PAUSES = 10;
  private static final long PAUSE_NANOS = 50_000_000L;
  private static final Set<PosixFilePermission> OTHERS =
      EnumSet.of(
          PosixFilePermission.GROUP_READ,
          PosixFilePermission.GROUP_WRITE,
          PosixFilePermission.OTHERS_READ,
          PosixFilePermission.OTHERS_WRITE);
  private static final Set<PosixFilePermission> OTHERS_CHANGE =
      EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE);

  /** A secret in a file. */
  public static SecretSource file(String path, String property) {
    return new SecretSource(property, null, path, false, "");
  }

  /**
   * The one of two properties that is set.
   *
   * @param envProperty names an environment variable
   * @param fileProperty names a file
   * @throws InvalidConfigurationException when both are set, or none
   */
  public static SecretSource required(
      PropertyReader reader, String envProperty, String fileProperty) {
    return optional(reader, envProperty, fileProperty)
        .orElseThrow(
            () ->
                new InvalidConfigurationException(
                    String.format("Neither %s nor %s is set", envProperty, fileProperty),
                    "Set exactly one of the two: the name of an environment variable, or a file."));
  }

  /**
   * The one of two properties that is set, if one is.
   *
   * @throws InvalidConfigurationException when both are set
   */
  public static Optional<SecretSource> optional(
      PropertyReader reader, String envProperty, String fileProperty) {
    String variable = reader.optional(envProperty);
    String file = reader.optional(fileProperty);
    if (variable != null && file != null) {
      throw new InvalidConfigurationException(
          String.format("Properties %s and %s are both set", envProperty, fileProperty),
          "Set exactly one of the two.");
    }

    if (variable != null) {
      return Optional.of(new SecretSource(envProperty, variable, null, false, ""));
    }

    return Optional.ofNullable(file).map(path -> file(path, fileProperty));
  }

  /**
   * The same for a JWT, which Kubernetes may put there: kubelet makes a service account's token
   * readable to all of a pod, unless all its containers run as one user. Nobody but the pod can
   * reach it. A folder that kubelet writes has a link {@code ..data} in it.
   */
  public SecretSource orProjected() {
    return new SecretSource(property, variable, file, true, advice);
  }

  /**
   * The same with more to say when the file is open to others.
   *
   * @param more the end of the hint
   */
  public SecretSource advising(String more) {
    return new SecretSource(property, variable, file, mayBeProjected, more);
  }

  /**
   * Reads the secret again, without the white space around it: a password, PIN or token.
   *
   * @throws InvalidConfigurationException when it does not exist, has more than one line, or others
   *     than the owner may read or change the file
   * @throws AccessDeniedException when this user may not read the file
   */
  public String read() {
    return oneLine(readText());
  }

  private String oneLine(String secret) {
    if (secret.lines().skip(1).findAny().isPresent()) {
      throw new InvalidConfigurationException(
          String.format("The %s, which %s names, has more than one line", this, property),
          "Put the secret into it and nothing else; a comment would be read as part of it.");
    }

    return secret;
  }

  /**
   * Reads as {@link #read} does, once.
   *
   * @return empty when it is a file that is not there, or has nothing in it: so is one that is just
   *     being replaced by a program which does not rename a new file
   */
  public Optional<String> readIfThere() {
    if (variable != null) {
      return Optional.of(read());
    }

    try {
      Path path = Path.of(file);
      String secret = Files.readString(path).strip();
      if (secret.isEmpty()) {
        return Optional.empty();
      }

      refuseOpen(path);
      return Optional.of(oneLine(secret));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException e) {
      return Optional.of(read()); // which tells why
    }
  }

  /** Reads as {@link #read} does, and gives a file that is not there yet half a second. */
  public String readSettled() {
    return readSettled(() -> LockSupport.parkNanos(PAUSE_NANOS));
  }

  String readSettled(Runnable pause) {
    for (int i = 0; i < PAUSES; i++) {
      Optional<String> secret = readIfThere();
      if (secret.isPresent()) {
        return secret.get();
      }

      pause.run();
    }

    return read();
  }

  /**
   * Reads a secret that may have any number of lines, such as a file of credentials.
   *
   * @throws InvalidConfigurationException as {@link #read} does, but for the lines
   * @throws AccessDeniedException when this user may not read the file
   */
  public String readText() {
    String secret = variable != null ? readVariable() : readFile();
    if (secret.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("The %s, which %s names, is empty", this, property),
          "Put the secret into it.");
    }

    return secret;
  }

  /** A hash of what is there now, good for nothing but a comparison in this process. */
  public String nowThere() {
    String value = variable == null ? null : System.getenv(variable);
    return variable == null
        ? contentHash(Path.of(file))
        : value == null ? "" : SecretHash.of(value);
  }

  /** The place; never the secret. */
  @Override
  public String toString() {
    return variable != null ? "environment variable " + variable : "file " + file;
  }

  /**
   * Refuses a private file that others may read or change, as ssh does. The group may read a file
   * that belongs to another user: that is how Kubernetes gives secrets to a container. A file
   * system without POSIX permissions has none to check.
   *
   * @throws InvalidConfigurationException when others may read or write it
   * @throws IOException when the file's permissions cannot be read
   */
  public static void requirePrivate(Path file, String property) throws IOException {
    requirePrivate(file, property, System.getProperty("user.name"));
  }

  static void requirePrivate(Path file, String property, String user) throws IOException {
    refuse(OTHERS, file, property, user, "");
  }

  private static boolean isProjected(Path file) {
    return Files.isSymbolicLink(file.toAbsolutePath().resolveSibling("..data"));
  }

  private static void refuse(
      Set<PosixFilePermission> open, Path file, String property, String user, String advice)
      throws IOException {
    PosixFileAttributes attributes = posix(file);
    if (attributes == null) {
      return;
    }

    EnumSet<PosixFilePermission> tooMuch = EnumSet.copyOf(open);
    tooMuch.retainAll(attributes.permissions());
    if (!attributes.owner().getName().equals(user)) {
      tooMuch.remove(PosixFilePermission.GROUP_READ);
    }

    if (!tooMuch.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "File %s, which %s names, is open to others besides its owner (%s)",
              file, property, PosixFilePermissions.toString(attributes.permissions())),
          isProjected(file)
              ? "It is in a volume of Kubernetes, where chmod does not last: in a pod template,"
                  + " give the volume defaultMode: 0400, and the pod's securityContext the"
                  + " runAsUser of the image and the same fsGroup."
              : "Make it private: chmod 600 " + file + advice);
    }
  }

  /**
   * Refuses a file that decides who logs in, or where, when users other than its owner may write
   * it. They may read it: there is no secret in it, or one that ends soon, as in the tokens that
   * Kubernetes projects into a container with mode 644. Links are followed.
   *
   * @param name what names the file: a property, a variable, another file
   * @throws InvalidConfigurationException when others may write it; not when the file does not
   *     exist: its reader explains that better
   */
  public static void requireUnwritable(Path file, String name) {
    PosixFileAttributes attributes;
    try {
      attributes = posix(file);
    } catch (IOException e) {
      return;
    }

    if (attributes != null && !Collections.disjoint(attributes.permissions(), OTHERS_CHANGE)) {
      throw new InvalidConfigurationException(
          String.format(
              "File %s, which %s names, may be changed by others besides its owner (%s): they could"
                  + " choose the login",
              file, name, PosixFilePermissions.toString(attributes.permissions())),
          "Remove the permission: chmod go-w " + file);
    }
  }

  /** The same of a file that an environment variable names, where it does. */
  public static void requireUnwritable(String variable) {
    String file = System.getenv(variable);
    if (file != null && !file.isBlank()) {
      requireUnwritable(Path.of(file), variable);
    }
  }

  /**
   * Tells whether a file has been replaced since: a hash of its content, good for nothing else;
   * empty when it cannot be read.
   */
  public static String contentHash(Path file) {
    try {
      return SecretHash.of(new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1));
    } catch (IOException e) {
      return "";
    }
  }

  private static PosixFileAttributes posix(Path file) throws IOException {
    try {
      return Files.readAttributes(file, PosixFileAttributes.class);
    } catch (UnsupportedOperationException e) {
      return null; // no permissions to check
    }
  }

  private String readVariable() {
    String value = System.getenv(variable);
    if (value == null) {
      throw new InvalidConfigurationException(
          String.format("Environment variable %s, which %s names, is not set", variable, property),
          "Export it before Spark starts, on every host of the cluster; or put the secret into a"
              + " file.");
    }

    return value.strip();
  }

  /** Refuses the file that others may read or change; a projected one may be read by others. */
  private void refuseOpen(Path path) throws IOException {
    boolean projected = mayBeProjected && isProjected(path);
    refuse(
        projected ? OTHERS_CHANGE : OTHERS,
        path,
        property,
        System.getProperty("user.name"),
        advice);
  }

  private String readFile() {
    Path path = Path.of(file);
    try {
      refuseOpen(path);
      return Files.readString(path).strip();
    } catch (NoSuchFileException e) {
      throw new InvalidConfigurationException(
          String.format("File %s, which %s names, does not exist", file, property),
          "Check the path on this host; executors need the file too.",
          e);
    } catch (java.nio.file.AccessDeniedException e) {
      throw new AccessDeniedException(
          String.format("File %s, which %s names, may not be read by this user", file, property),
          "Make the user that runs Spark the file's owner (chown), with mode 600.",
          e);
    } catch (IOException e) {
      throw new InvalidConfigurationException(
          String.format("File %s, which %s names, cannot be read: %s", file, property, e),
          "Check the path and its permissions on this host.",
          e);
    }
  }
}
