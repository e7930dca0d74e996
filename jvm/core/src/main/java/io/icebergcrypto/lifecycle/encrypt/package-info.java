/**
 * Encrypts a plaintext table in place: what its metadata becomes, which of its files were copied
 * already, and the snapshots that take the place of its own. Reading and writing rows is not here.
 */
package io.icebergcrypto.lifecycle.encrypt;
