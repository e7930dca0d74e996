/**
 * Changes to the keys of tables that exist: another master key, another KEK. Each is one commit of
 * metadata, and no file is rewritten.
 */
package io.icebergcrypto.lifecycle;
