/**
 * What every call of a KMS goes through: the cache, retries and circuit breakers, counters, the
 * time limit, and who calls.
 */
package io.icebergcrypto.kms.call;
