package io.icebergcrypto.io.checked;

import java.util.function.LongSupplier;
import org.apache.iceberg.io.InputFile;

/**
 * A file as it is stored.
 *
 * @param file may believe a length that it was given
 * @param length the length in bytes, by the storage if it can be asked
 * @param guarded whether it has to be wholly encrypted and authenticated
 */
public record StoredInput(InputFile file, LongSupplier length, boolean guarded) {}
