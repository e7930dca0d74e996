/**
 * The catalog behind: what its class does differently from others, what is handed over to it, what
 * a server's refusal means.
 */
package io.icebergcrypto.catalog.behind;
