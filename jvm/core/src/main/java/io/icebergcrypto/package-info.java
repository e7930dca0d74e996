/** The errors. What encrypts, stores and proves is in the packages below. */
package io.icebergcrypto;
