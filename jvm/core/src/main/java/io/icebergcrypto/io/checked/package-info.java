/**
 * Reading an encrypted file and finding it as it was written: its length in the storage and the
 * tags of its blocks are checked, and errors name the table and the file. Iceberg's own streams
 * read no ranges.
 */
package io.icebergcrypto.io.checked;
