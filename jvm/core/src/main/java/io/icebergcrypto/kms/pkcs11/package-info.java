/** Hardware security modules, by PKCS#11 and the JDK's SunPKCS11 provider. */
package io.icebergcrypto.kms.pkcs11;
