"""Every block of an AES GCM stream (AES GCM Stream spec)."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyspark_iceberg_crypto.reader._ags1 import HEADER, NONCE, OVERHEAD
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof._problems import wrong_tag
from pyspark_iceberg_crypto.reader.proof._stored import StoredFile


def check(file: StoredFile, key: KeyMetadata, layout: Mapping[str, int]) -> None:
    """Read a stream from start to end, block by block, and keep none.

    Args:
        file: the stream, of the length that its key metadata gives.
        key: its key.
        layout: its blocks, by its header and that length.

    Raises:
        FoundError: a block is not what was written; blocks count from 0.
    """
    cipher = AESGCM(key.key)
    stored, count = layout["block_size"] + OVERHEAD, layout["block_count"]
    for block in range(count):
        start = HEADER + block * stored
        sealed = file.read(start, min(stored, file.length - start))
        aad = key.aad_prefix + block.to_bytes(4, "little")
        try:
            cipher.decrypt(sealed[:NONCE], sealed[NONCE:], aad)
        except InvalidTag:
            raise wrong_tag(f"block {block} of {count}") from None
