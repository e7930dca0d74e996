/** A close look: at one file with its key, and at tables for what needs repair. */
package io.icebergcrypto.spark.inspect;
