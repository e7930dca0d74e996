/** Tables that Spark creates in its session catalog without a call of {@code spark_catalog}. */
package io.icebergcrypto.spark.session;
