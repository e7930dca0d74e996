/**
 * What can be done with tables, their keys and files: each operation is declared once, and SQL and
 * Python call it by its name.
 */
package io.icebergcrypto.spark.operations;
