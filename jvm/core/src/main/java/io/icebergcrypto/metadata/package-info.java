/**
 * Table metadata as it is found: read once from its file, or loaded by the catalog behind, whose
 * errors it types; and what it says of KEKs, statistics files and its place.
 */
package io.icebergcrypto.metadata;
