/**
 * What is wrong with a table and with its keys, found by one search: doctor shows it, repair fixes
 * what it can.
 */
package io.icebergcrypto.audit.diagnosis;
