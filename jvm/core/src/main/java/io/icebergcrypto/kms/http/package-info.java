/** JSON over HTTP, for the KMSs that are asked without a library of theirs. */
package io.icebergcrypto.kms.http;
