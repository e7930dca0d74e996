package io.icebergcrypto.integrity;

/**
 * Whether somebody who writes to the storage would be noticed when he changes a table's metadata.
 *
 * @param authenticated whether each load checks the metadata
 * @param detail by what, or why not
 */
public record MetadataAuthentication(boolean authenticated, String detail) {}
