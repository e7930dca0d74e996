/** The one class that the Python package calls. */
package io.icebergcrypto.python;
