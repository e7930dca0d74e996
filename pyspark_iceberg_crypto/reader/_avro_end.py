"""Where an Avro file ends, for files whose length nothing authenticated gives."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

from pyspark_iceberg_crypto.reader._key_metadata import read_number

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
    try:
        count = read_number(stream)
        while count:  # a map: blocks of entries
            if count < 0:
                read_number(stream)  # the block's length in bytes
            for _ in range(2 * abs(count)):
                stream.seek(max(0, read_number(stream)), io.SEEK_CUR)
            count = read_number(stream)
    except (ValueError, OverflowError):
        return False
    sync = stream.read(_SYNC)
    stream.seek(-_SYNC, io.SEEK_END)
    return stream.read(_SYNC) == sync
