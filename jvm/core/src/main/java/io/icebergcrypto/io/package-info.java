/**
 * How an encrypted table reads and writes its files: its encryption manager, its FileIO, the guard
 * that keeps plaintext files out, and encrypted statistics.
 */
package io.icebergcrypto.io;
