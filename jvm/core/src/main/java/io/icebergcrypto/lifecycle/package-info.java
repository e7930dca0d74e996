/**
 * Changes to the keys of tables that exist: another master key, another KEK. Each is one commit of
 * metadata, and no file is rewritten. And the metadata of a table's copy elsewhere.
 */
package io.icebergcrypto.lifecycle;
