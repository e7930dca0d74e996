package io.icebergcrypto.format;

import io.icebergcrypto.TamperedException;
import java.util.function.Function;

/**
 * Reads the little of Thrift's compact protocol that a Parquet footer's plaintext part needs, from
 * an array that an attacker may have written (Thrift, "Thrift Compact protocol encoding").
 *
 * <p>Every step consumes input and no length or count is believed beyond the bytes at hand, so time
 * is linear in the array and nothing is allocated. Nesting is limited.
 */
final class ThriftCompactReader {
  /** Wire type of the byte that ends a struct. */
  static final int STOP = 0;

  /** Wire type of a struct's boolean field that is true; the type is the value. */
  static final int TRUE = 1;

  /** Wire type of a struct's boolean field that is false. */
  static final int FALSE = 2;

  /** Wire type of a string or of binary data. */
  static final int BINARY = 8;

  /** Wire type of a struct. */
  static final int STRUCT = 12;

  private static final int BYTE = 3;
  private static final int I16 = 4;
  private static final int I32 = 5;
  private static final int I64 = 6;
  private static final int DOUBLE = 7;
  private static final int LIST = 9;
  private static final int SET = 10;
  private static final int MAP = 11;
  private static final int UUID = 13;

  private static final int MAX_DEPTH = 16;
  private static final int MAX_VARINT_BYTES = 10;
  private static final int MAX_FIELD_ID = Short.MAX_VALUE;

  private final byte[] bytes;
  private final Function<String, TamperedException> error;
  private int position;

  /**
   * Makes a reader that starts at the first byte.
   *
   * @param bytes what is read
   * @param error turns a sentence about what is wrong into the exception
   */
  ThriftCompactReader(byte[] bytes, Function<String, TamperedException> error) {
    this.bytes = bytes;
    this.error = error;
  }

  /** The number of bytes read so far. */
  int position() {
    return position;
  }

  /** Takes one field of a struct; has to read or {@link #skip} its value. */
  interface FieldReader {
    void read(int id, int type);
  }

  /**
   * Reads a struct's fields up to and including its stop byte.
   *
   * @param fields is called for each field, in the file's order; a field may come twice
   */
  void readStruct(FieldReader fields) {
    int id = 0;
    while (true) {
      int header = readByte();
      int type = header & 0x0f;
      if (type == STOP) {
        if (header != 0) {
          throw error.apply("a struct ends with byte " + header + ", expected 0");
        }
        return;
      }
      int delta = header >>> 4;
      id = delta == 0 ? readFieldId() : id + delta;
      if (id > MAX_FIELD_ID) {
        throw error.apply("field number " + id + " is out of range");
      }
      fields.read(id, type);
    }
  }

  /** Passes over a string or binary value and returns its length in bytes. */
  int skipBinary() {
    long length = readVarint();
    if (length < 0 || length > remaining()) {
      throw error.apply(
          String.format(
              "a value of %s bytes at offset %d, expected no more than the %d that are left",
              Long.toUnsignedString(length), position, remaining()));
    }
    position += (int) length;
    return (int) length;
  }

  /** Passes over a struct field's value of any type. */
  void skip(int type) {
    skip(type, true, 0);
  }

  private void skip(int type, boolean isField, int depth) {
    if (depth > MAX_DEPTH) {
      throw error.apply("more than " + MAX_DEPTH + " levels of nesting");
    }
    switch (type) {
      case TRUE, FALSE -> advance(isField ? 0 : 1);
      case BYTE -> advance(1);
      case I16, I32, I64 -> readVarint();
      case DOUBLE -> advance(8);
      case UUID -> advance(16);
      case BINARY -> skipBinary();
      case LIST, SET -> skipList(depth);
      case MAP -> skipMap(depth);
      case STRUCT -> readStruct((id, fieldType) -> skip(fieldType, true, depth + 1));
      default -> throw error.apply("type " + type + " at offset " + position + " is unknown");
    }
  }

  private void skipList(int depth) {
    int header = readByte();
    int elementType = header & 0x0f;
    long size = header >>> 4;
    if (size == 15) {
      size = readVarint();
    }
    checkCount(size);
    if (size == 0 && elementType > UUID) {
      throw error.apply("type " + elementType + " at offset " + position + " is unknown");
    }
    for (long i = 0; i < size; i++) {
      skip(elementType, false, depth + 1);
    }
  }

  private void skipMap(int depth) {
    long size = readVarint();
    checkCount(size);
    if (size == 0) {
      return;
    }
    int types = readByte();
    for (long i = 0; i < size; i++) {
      skip(types >>> 4, false, depth + 1);
      skip(types & 0x0f, false, depth + 1);
    }
  }

  /** Every element takes a byte or more. */
  private void checkCount(long size) {
    if (size < 0 || size > remaining()) {
      throw error.apply(
          String.format(
              "a collection of %s elements at offset %d, where %d bytes are left",
              Long.toUnsignedString(size), position, remaining()));
    }
  }

  private int readFieldId() {
    long zigzag = readVarint();
    long id = (zigzag >>> 1) ^ -(zigzag & 1);
    if (id <= 0 || id > MAX_FIELD_ID) {
      throw error.apply("field number " + id + " is out of range");
    }
    return (int) id;
  }

  private long readVarint() {
    long value = 0;
    for (int i = 0; i < MAX_VARINT_BYTES; i++) {
      int next = readByte();
      value |= (long) (next & 0x7f) << (7 * i);
      if ((next & 0x80) == 0) {
        return value;
      }
    }
    throw error.apply("a number of more than " + MAX_VARINT_BYTES + " bytes at offset " + position);
  }

  private int readByte() {
    if (remaining() == 0) {
      throw error.apply("it ends after " + bytes.length + " bytes, in the middle of a value");
    }
    return bytes[position++] & 0xff;
  }

  private void advance(int count) {
    if (count > remaining()) {
      throw error.apply("it ends after " + bytes.length + " bytes, in the middle of a value");
    }
    position += count;
  }

  private int remaining() {
    return bytes.length - position;
  }
}
