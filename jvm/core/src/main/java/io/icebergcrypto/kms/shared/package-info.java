/** What clients of one JVM share, and what is done when nobody has them any more. */
package io.icebergcrypto.kms.shared;
