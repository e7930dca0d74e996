/**
 * What verification's Spark tasks work with: a table's tree of files, folders of the storage, and a
 * record of what was checked before.
 */
package io.icebergcrypto.spark.verify.scan;
