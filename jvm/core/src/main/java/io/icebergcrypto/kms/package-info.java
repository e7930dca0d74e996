/**
 * Where master keys are: one class a KMS, and the decorator that every client goes through. A
 * client wraps and unwraps KEKs under a master key that never leaves its KMS.
 */
package io.icebergcrypto.kms;
