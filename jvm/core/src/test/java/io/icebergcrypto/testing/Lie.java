package io.icebergcrypto.testing;

/** What a KMS answers instead of what it was asked for. */
public enum Lie {
  /** The bytes of another key; and it wraps another key than the one it is given. */
  ANOTHER_KEY,
  /** What it answered to an earlier request of the kind. */
  OLD_ANSWER,
  /** 15 bytes of the right ones. */
  SHORT,
  /** No bytes. */
  EMPTY,
  /** What another client gets that asks at the same time; they get the answer to this request. */
  SWAPPED
}
