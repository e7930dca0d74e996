"""Where an Avro file ends, for files whose length nothing authenticated gives."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.reader._expected import ExpectedFile

_MAGIC = b"Obj\x01"
_SYNC = 16


def check(stream: io.RawIOBase, file: ExpectedFile) -> None:
    """Check that an Avro file ends with its sync marker, as its header and each block do; then go to its start.

    Avro's readers take a block that is cut off for the end of the file. Content other than Avro's passes: Puffin's
    and Parquet's readers begin at the end, and miss it. (Avro specification, "Object Container Files")

    Raises:
        TamperedError: it is cut off.
    """
    buffered: Any = io.BufferedReader(stream)
    try:
        if buffered.read(len(_MAGIC)) == _MAGIC and not _is_whole(buffered):
            raise file.cut_behind_a_block()
        buffered.seek(0)
    finally:
        buffered.detach()


def _is_whole(stream: BinaryIO) -> bool:
    count = _number(stream)
    while count:  # a map: blocks of entries
        if count < 0:
            _number(stream)  # the block's length in bytes
        for _ in range(2 * abs(count)):
            stream.seek(max(0, _number(stream)), io.SEEK_CUR)
        count = _number(stream)
    sync = stream.read(_SYNC)
    stream.seek(-_SYNC, io.SEEK_END)
    return stream.read(_SYNC) == sync


def _number(stream: BinaryIO) -> int:
    """Avro's zigzag number; 0 at the end."""
    value = shift = 0
    while byte := stream.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            break
        shift += 7
    return (value >> 1) ^ -(value & 1)
