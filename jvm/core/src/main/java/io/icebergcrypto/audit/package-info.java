/**
 * What a table reaches and what a file of each kind must be: the facts on which verification
 * stands, without an engine.
 */
package io.icebergcrypto.audit;
