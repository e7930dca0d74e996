package io.icebergcrypto.catalog.behind;

/** Iceberg 1.11 loads by identifier alone; later versions have further forms, which are here. */
public abstract class LoadingCatalog extends ForwardingCatalog {}
