/**
 * What every call of a KMS goes through: the cache, retries and circuit breakers, counters, the
 * time limit, and who calls; and what the clients of one configuration share.
 */
package io.icebergcrypto.kms.call;
