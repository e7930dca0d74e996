/**
 * What verification's Spark tasks work with: a table's tree of files, folders of the storage, a
 * record of what was checked before, and progress.
 */
package io.icebergcrypto.spark.verify.scan;
