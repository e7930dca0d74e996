/**
 * What a catalog's properties say of a KMS: the names of the properties, how they are read, where
 * secrets are, and which addresses are allowed.
 */
package io.icebergcrypto.kms.config;
