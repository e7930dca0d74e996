package io.icebergcrypto.spark.verify;

/**
 * What a check found about one file.
 *
 * @param magic the name of what its first bytes say, null when they could not be read
 * @param encrypted whether its first bytes say that it is encrypted
 * @param length its length in bytes as stored; the expected one when the storage was not asked, -1
 *     when neither is known
 * @param bytesRead how many bytes were read of it
 * @param problem what is wrong, null when nothing is
 * @param unchecked whether it could not be checked, for the reason in {@code problem}: storage or
 *     KMS failed, which says nothing about the file
 */
public record CheckedFile(
    String magic,
    boolean encrypted,
    long length,
    long bytesRead,
    String problem,
    boolean unchecked) {}
