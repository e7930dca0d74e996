/** What decorators of Iceberg's objects forward, so that each has only what it changes. */
package io.icebergcrypto.metadata.forwarding;
