/**
 * The metadata of a table's copy at another location: other paths, the same keys but for those of
 * files that are written anew. Writing them is not here.
 */
package io.icebergcrypto.lifecycle.copy;
