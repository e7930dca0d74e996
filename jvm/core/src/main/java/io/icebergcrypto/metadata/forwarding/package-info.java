/** Decorators of Iceberg's objects: each states what it changes, and forwards the rest. */
package io.icebergcrypto.metadata.forwarding;
