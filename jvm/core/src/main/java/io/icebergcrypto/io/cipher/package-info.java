/** Which of Java's providers encrypts and decrypts files. */
package io.icebergcrypto.io.cipher;
