/** What is wrong with a table that cannot be used as it should, and how that is repaired. */
package io.icebergcrypto.lifecycle.repair;
