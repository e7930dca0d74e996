/** What is wrong with a table that cannot be used as it should, and how that is mended. */
package io.icebergcrypto.lifecycle.repair;
