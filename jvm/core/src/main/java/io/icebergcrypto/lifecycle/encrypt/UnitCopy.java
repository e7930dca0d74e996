package io.icebergcrypto.lifecycle.encrypt;

/**
 * The copy of one unit: files that have its rows and no others, so that it is kept or made again by
 * itself.
 *
 * @param first the position of the first file in the manifest of its group
 * @param files how many files follow each other there; none when all rows were deleted
 * @param rows how many rows they have
 */
public record UnitCopy(Unit unit, int first, int files, long rows) {}
