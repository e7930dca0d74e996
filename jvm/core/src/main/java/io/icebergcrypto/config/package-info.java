/** The properties of catalogs and tables that concern encryption, and checks of what they say. */
package io.icebergcrypto.config;
