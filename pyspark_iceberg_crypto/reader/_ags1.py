"""AES GCM streams, read and written: Iceberg's encryption of all files but Parquet (AES GCM Stream spec).

A file is ``AGS1``, the block length (4 bytes, little endian), then blocks of nonce (12 bytes), ciphertext and tag
(16). A block is authenticated together with the file's AAD prefix and its number (4 bytes, little endian).
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.local import _files
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from pyiceberg.io import InputStream

    from pyspark_iceberg_crypto.reader._expected import ExpectedFile

MAGIC = b"AGS1"
BLOCK = _files.ICEBERG_BLOCK
"""Plaintext bytes of a full block. The spec leaves it free; Iceberg writes and reads this one and no other."""
HEADER, NONCE, OVERHEAD = _files.AGS1_HEADER, 12, _files.AGS1_OVERHEAD
_STORED = BLOCK + OVERHEAD
_AT_ONCE = 8  # blocks of one request
_INTO = hasattr(AESGCM, "decrypt_into")  # since cryptography 47


class DecryptedStream(io.RawIOBase):
    """The plaintext of an AES GCM stream.

    Only the blocks with the bytes that are asked for are read, and each is authenticated before a byte of it is
    returned. After an error it returns no more.
    """

    def __init__(self, stored: InputStream, key: KeyMetadata, file: ExpectedFile) -> None:
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
        has = length_of(stored, file)
        if has != file.length:
            raise file.of_other_length(has)
        self._stored, self._file = stored, file
        self._cipher, self._aad_prefix = AESGCM(key.key), key.aad_prefix
        self._length = _plaintext_length(file)
        self._position = 0
        self._block: tuple[int, bytes] = (-1, b"")
        self._ahead: list[memoryview] = []  # blocks as they are stored
        self._next, self._run = 0, 1  # which block comes first there; how many a request reads
        self._failed: Exception | None = None
        if not self._length:
            self._opened(0, self._sealed(0, 1)[0])  # there is nothing to return, but a tag to check

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
        count = max(0, min(len(target), self._length - self._position))
        self._fill(target[:count])
        return count

    def read(self, size: int = -1, /) -> bytes:
        """Read up to a number of bytes, or all that are left."""
        left = max(0, self._length - self._position)
        count = left if size is None or size < 0 else min(size, left)
        held = io.BytesIO(bytes(count))  # which takes bytes, and gives them away, without a copy
        with held.getbuffer() as target:
            self._fill(target)
        return held.getvalue()

    def readall(self) -> bytes:
        """Read all that is left."""
        return self.read()

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._block, self._ahead = (-1, b""), []
            self._stored.close()
        super().close()

    def _fill(self, target: memoryview) -> None:
        """Fill a buffer from the position on; after an error it has no byte that was not authenticated."""
        if self._failed:
            raise self._failed
        try:
            self._decrypt(target)
        except IcebergCryptoError as error:
            self._failed = error
            target[:] = bytes(len(target))
            raise
        self._position += len(target)

    def _decrypt(self, target: memoryview) -> None:
        done, end = 0, self._position + len(target)
        while done < len(target):
            number, offset = divmod(self._position + done, BLOCK)
            if number == self._block[0]:
                part = self._block[1][offset : offset + len(target) - done]
                target[done : done + len(part)] = part
                done += len(part)
                continue
            for sealed in self._from(number, (end - 1) // BLOCK - number + 1):
                count = len(sealed) - OVERHEAD
                if offset or count > len(target) - done:  # the next read may want the rest
                    self._block = (number, self._opened(number, sealed))
                    break
                self._open_into(number, sealed, target[done : done + count])
                done += count
                number += 1

    def _from(self, number: int, count: int) -> Iterator[memoryview]:
        """Take blocks as they are stored. Who reads on gets them by ever larger requests, up to a limit."""
        for one in range(number, number + count):
            if one != self._next:
                self._ahead, self._run = [], 1
            if not self._ahead:
                wanted = max(self._run, number + count - one)
                last = -(-self._length // BLOCK)
                self._ahead = self._sealed(one, min(wanted, _AT_ONCE, last - one))
                self._run = min(2 * self._run, _AT_ONCE)
            self._next = one + 1
            yield self._ahead.pop(0)

    def _sealed(self, first: int, count: int) -> list[memoryview]:
        """Read blocks as they are stored."""
        start = HEADER + first * _STORED if first else 0
        end = min(HEADER + (first + count) * _STORED, self._file.length or 0)
        try:
            self._stored.seek(start)
            data = memoryview(_all(self._stored, end - start, self._file))
        except OSError as error:
            raise self._file.unreadable(error) from error
        if not first:
            self._check_header(bytes(data[:HEADER]))
            data = data[HEADER:]
        return [data[i * _STORED : (i + 1) * _STORED] for i in range(count)]

    def _opened(self, number: int, sealed: memoryview) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], self._aad(number))
        except InvalidTag:
            raise self._file.wrong_tag() from None

    def _open_into(self, number: int, sealed: memoryview, target: memoryview) -> None:
        if not _INTO:
            target[:] = self._opened(number, sealed)
            return
        try:
            self._cipher.decrypt_into(sealed[:NONCE], sealed[NONCE:], self._aad(number), target)
        except InvalidTag:
            raise self._file.wrong_tag() from None

    def _aad(self, number: int) -> bytes:
        return self._aad_prefix + number.to_bytes(4, "little")

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


def fits_listed(listed: int, has: int) -> bool:
    """Whether a file is as long as what lists it says, so that nothing of it is missing.

    A list gives the length in bytes as they are stored, as the specification has it; or of the content, as iceberg-rust
    does for manifests.

    Args:
        listed: what the list gives, in one of the two meanings.
        has: the length that the storage gives.
    """
    # taken for that of the content, it may be that of a longer file which was cut off behind a full block
    is_whole_blocks = listed > _STORED and (listed - HEADER) % _STORED == 0
    return listed > 0 and (has == stored_length(listed) or (has == listed and not is_whole_blocks))


def listed_length(listed: int, has: int, file: ExpectedFile) -> int | None:
    """Return the length of a file whose key metadata has none, by what lists it: see `fits_listed`.

    Returns:
        None if a file that was cut off behind a block could have this length.

    Raises:
        TamperedError: it has another length in either meaning.
    """
    if fits_listed(listed, has):
        return has
    if has == listed:
        return None
    raise file.not_as_listed(listed, has, stored_length(listed))


def length_of(stored: InputStream, file: ExpectedFile) -> int:
    """Ask the storage how long a file is, in bytes.

    Raises:
        IcebergCryptoError: it cannot be read.
    """
    try:
        stored.seek(0, os.SEEK_END)
        return stored.tell()
    except OSError as error:
        raise file.unreadable(error) from error


def _plaintext_length(file: ExpectedFile) -> int:
    length = file.length or 0
    count = _files.block_count(length, BLOCK)
    if count is None:
        raise file.malformed("no sequence of blocks has this length")
    if count > _files.MOST_BLOCKS:
        most = _files.MOST_BLOCKS
        raise file.malformed(f"it would have {count} blocks, expected no more than {most}")
    return length - HEADER - count * OVERHEAD


def _all(stored: InputStream, count: int, file: ExpectedFile) -> bytes:
    """Read all of a range: a storage may return less at once."""
    parts = []
    while count > 0:
        part = stored.read(count)
        if not part:
            raise file.unreadable(f"its storage ended the read {count} bytes early")
        parts.append(part)
        count -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
