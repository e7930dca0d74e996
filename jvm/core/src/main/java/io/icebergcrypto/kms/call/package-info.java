/**
 * What every call of a KMS goes through: the cache, retries and circuit breakers, counters, the
 * time limit, who calls, and the tables that translate errors.
 */
package io.icebergcrypto.kms.call;
