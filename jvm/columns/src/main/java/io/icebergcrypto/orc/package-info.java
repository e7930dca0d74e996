/**
 * Keys for the columns of Spark's own ORC files: a key provider for ORC over this project's KMS
 * clients, checks before files are written, and what files tell of their keys.
 */
package io.icebergcrypto.orc;
