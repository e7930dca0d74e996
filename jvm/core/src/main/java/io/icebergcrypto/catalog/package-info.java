/**
 * A catalog that adds encryption to the one behind it: {@link
 * io.icebergcrypto.catalog.EncryptedCatalog}, and what it puts around tables, their operations and
 * transactions, and the creation and registration of tables.
 */
package io.icebergcrypto.catalog;
