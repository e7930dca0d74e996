/** Google Cloud KMS, by its REST interface; Google's library logs in. */
package io.icebergcrypto.kms.gcp;
