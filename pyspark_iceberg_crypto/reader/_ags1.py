"""AES GCM streams, read and written: Iceberg's encryption of all files but Parquet (AES GCM Stream spec).

A file is ``AGS1``, the block length (4 bytes, little endian), then blocks of nonce (12 bytes), ciphertext and tag
(16). A block is authenticated together with the file's AAD prefix and its number (4 bytes, little endian).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from pyspark_iceberg_crypto.reader._expected import ExpectedFile

MAGIC = b"AGS1"
BLOCK = 1 << 20
"""Plaintext bytes of a full block. The spec leaves it free; Iceberg writes and reads this one and no other."""
HEADER, NONCE, OVERHEAD = 8, 12, 28
_STORED = BLOCK + OVERHEAD
_AT_ONCE = 8  # blocks of one request
_MOST_BLOCKS = 2**31 - 1


class Stored(Protocol):
    """The bytes of a file as they are stored."""

    def read(self, size: int = 0, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...


class DecryptedStream(io.RawIOBase):
    """The plaintext of an AES GCM stream.

    Only the blocks with the bytes that are asked for are read, and each is authenticated before a byte of it is
    returned. After an error it returns no more.
    """

    def __init__(self, stored: Stored, key: KeyMetadata, file: ExpectedFile) -> None:
        """Compare the file's length with that of its key metadata. Nothing else is read yet.

        Args:
            stored: the file; it is closed with this stream.
            key: the file's, with its length.
            file: what it is, for errors; its length is that of the key metadata.

        Raises:
            TamperedError: the file is longer or shorter, or no stream has this length.
        """
        if file.length is None:
            raise file.length_unknown()
        has = stored.seek(0, os.SEEK_END)
        if has != file.length:
            raise file.of_other_length(has)
        self._stored, self._file = stored, file
        self._cipher, self._aad_prefix = AESGCM(key.key), key.aad_prefix
        self._length = _plaintext_length(file)
        self._position = 0
        self._block: tuple[int, bytes] = (-1, b"")
        self._failed: Exception | None = None
        if not self._length:
            self._decrypted(0, 1)  # there is nothing to return, but a tag to check

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be positioned."""
        return True

    def tell(self) -> int:
        """Return the position in the plaintext."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position of the plaintext, in bytes, as ``io.IOBase.seek``."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        if start + offset < 0:
            raise ValueError(f"negative position {start + offset}")
        self._position = start + offset
        return self._position

    def size(self) -> int:
        """Return the length of the plaintext in bytes."""
        return self._length

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read up to as many bytes as the buffer has."""
        target = memoryview(buffer).cast("B")
        data = self._plaintext(len(target))
        target[: len(data)] = data
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        """Read up to a number of bytes, or all that are left."""
        data = self._plaintext(self._length if size is None or size < 0 else size)
        return data if isinstance(data, bytes) else bytes(data)

    def readall(self) -> bytes:
        """Read all that is left."""
        return self.read()

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._block = (-1, b"")
            self._stored.close()
        super().close()

    def _plaintext(self, most: int) -> bytes | memoryview:
        end = min(self._length, self._position + most)
        if end <= self._position:
            return b""
        first, last = self._position // BLOCK, (end - 1) // BLOCK
        blocks = list(self._blocks(first, last))
        data = blocks[0] if len(blocks) == 1 else b"".join(blocks)
        start = self._position - first * BLOCK
        self._position = end
        whole = not start and end - first * BLOCK == len(data)
        return data if whole else memoryview(data)[start : end - first * BLOCK]

    def _blocks(self, first: int, last: int) -> Iterator[bytes]:
        if first == self._block[0]:
            yield self._block[1]
            first += 1
        while first <= last:
            count = min(_AT_ONCE, last - first + 1)
            yield from self._decrypted(first, count)
            first += count

    def _decrypted(self, first: int, count: int) -> list[bytes]:
        """Read and decrypt blocks, and keep the last one."""
        if self._failed:
            raise self._failed
        try:
            blocks = self._read(first, count)
        except IcebergCryptoError as error:
            self._failed = error
            raise
        self._block = (first + count - 1, blocks[-1])
        return blocks

    def _read(self, first: int, count: int) -> list[bytes]:
        start = HEADER + first * _STORED if first else 0
        end = min(HEADER + (first + count) * _STORED, self._file.length or 0)
        self._stored.seek(start)
        data = memoryview(_all(self._stored, end - start, self._file))
        if not first:
            self._check_header(bytes(data[:HEADER]))
            data = data[HEADER:]
        blocks = []
        for i in range(count):
            sealed = data[i * _STORED : (i + 1) * _STORED]
            aad = self._aad_prefix + (first + i).to_bytes(4, "little")
            try:
                blocks.append(self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], aad))
            except InvalidTag:
                raise self._file.wrong_tag() from None
        return blocks

    def _check_header(self, header: bytes) -> None:
        if header[:3] == MAGIC[:3] and header[3:4] > MAGIC[3:]:
            raise self._file.of_other_version(
                "it starts with the magic of a later version than AGS1"
            )
        if header[:4] != MAGIC:
            raise self._file.malformed("Invalid GCM stream: it does not start with AGS1")
        size = int.from_bytes(header[4:], "little")
        if size != BLOCK:
            raise self._file.of_other_version(
                f"its header gives blocks of {size} bytes, expected {BLOCK}"
            )


def encrypt(plaintext: bytes, key_length: int) -> tuple[bytes, KeyMetadata]:
    """Encrypt a file, with a key and an AAD prefix of its own.

    Args:
        plaintext: the file's content.
        key_length: of its key, in bytes: 16, 24 or 32.
    """
    key, aad_prefix = AESGCM.generate_key(key_length * 8), os.urandom(16)
    cipher = AESGCM(key)
    parts = [MAGIC + BLOCK.to_bytes(4, "little")]
    # the empty plaintext is one block, so that it is authenticated too
    for i in range(max(1, -(-len(plaintext) // BLOCK))):
        nonce = os.urandom(NONCE)
        block = memoryview(plaintext)[i * BLOCK : (i + 1) * BLOCK]
        parts += [nonce, cipher.encrypt(nonce, block, aad_prefix + i.to_bytes(4, "little"))]
    data = b"".join(parts)
    return data, KeyMetadata(key, aad_prefix, len(data))


def stored_length(plaintext_length: int) -> int:
    """Return how long a file of this content is, in bytes as it is stored."""
    return HEADER + plaintext_length + max(1, -(-plaintext_length // BLOCK)) * OVERHEAD


def _plaintext_length(file: ExpectedFile) -> int:
    body = (file.length or 0) - HEADER
    full, rest = divmod(body, _STORED)
    if body < OVERHEAD or (0 < rest <= OVERHEAD and body != OVERHEAD):
        raise file.malformed("no sequence of blocks has this length")
    count = full + (rest > 0)
    if count > _MOST_BLOCKS:
        raise file.malformed(f"it would have {count} blocks, expected no more than {_MOST_BLOCKS}")
    return body - count * OVERHEAD


def _all(stored: Stored, count: int, file: ExpectedFile) -> bytes:
    """Read all of a range: a storage may return less at once."""
    parts = []
    while count > 0:
        part = stored.read(count)
        if not part:
            raise file.unreadable(f"its storage ended the read {count} bytes early")
        parts.append(part)
        count -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
