/** Hadoop KMS and Apache Ranger KMS, by their REST interface, and Hadoop's logins. */
package io.icebergcrypto.kms.hadoop;
