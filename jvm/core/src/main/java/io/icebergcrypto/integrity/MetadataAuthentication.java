package io.icebergcrypto.integrity;

/**
 * Whether a change to a table's metadata by someone with access to the storage would be noticed.
 *
 * @param authenticated whether each load checks the metadata
 * @param detail by what, or why not
 */
public record MetadataAuthentication(boolean authenticated, String detail) {}
