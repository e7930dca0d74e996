/** HashiCorp Vault's transit engine, by its HTTP interface, and Vault's logins. */
package io.icebergcrypto.kms.vault;
