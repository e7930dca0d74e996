package io.icebergcrypto.integrity;

/**
 * Whether a change to a table's metadata would be noticed that somebody with access to the storage
 * makes.
 *
 * @param authenticated whether each load checks the metadata
 * @param detail by what, or why not
 */
public record MetadataAuthentication(boolean authenticated, String detail) {}
