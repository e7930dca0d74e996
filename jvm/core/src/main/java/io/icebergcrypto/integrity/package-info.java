/**
 * The integrity of metadata on catalogs that keep no more than a pointer to it: each commit adds a
 * MAC, each load checks it. The MAC's key comes from a KEK of the table, so only those who may use
 * the master key can make one.
 */
package io.icebergcrypto.integrity;
