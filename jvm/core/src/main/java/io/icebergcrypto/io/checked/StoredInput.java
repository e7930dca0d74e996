package io.icebergcrypto.io.checked;

import java.util.function.LongSupplier;
import org.apache.iceberg.io.InputFile;

/**
 * A file as it is stored.
 *
 * @param file may believe a length that it was given
 * @param length the length in bytes, by the storage if it can be asked
 * @param listed the length by the manifest list or the manifest that lists the file; null: none
 * @param guarded whether it has to be wholly encrypted and authenticated
 * @param anyLength whether it may be of any length, where nothing says how long it was written
 */
public record StoredInput(
    InputFile file, LongSupplier length, Long listed, boolean guarded, boolean anyLength) {}
