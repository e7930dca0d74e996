/**
 * Encrypts single values of columns, with keys of their own, which a table of the catalog keeps.
 */
package io.icebergcrypto.values;
