"""The footer of encrypted Parquet: it says one thing to every reader, and what was checked of it is what is read."""

import io
from collections.abc import Iterable
from typing import Any

import pytest
from pyiceberg.io import InputFile

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.reader import _parquet
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import DecryptedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from reader.parquet_files import File, parquet

GCM, CTR = b"\x1c\x1c", b"\x1c\x2c"


class Storage(InputFile):
    """Of a file, which has another footer as soon as it was read; where it was read is kept."""

    def __init__(self, file: File, later: bytes) -> None:
        super().__init__("s3://b/f")
        self.file, self.later, self.reads = file, later, list[tuple[int, int]]()

    def __len__(self) -> int:
        return len(self.file.data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:
        stored = self

        class Stream(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                start = self.tell()
                data = super().read(size)
                stored.reads.append((start, start + len(data)))
                if start <= stored.file.footer:
                    self.getbuffer()[stored.file.footer :] = stored.later
                return data

        return Stream(self.file.data)


def rows(file: File, storage: InputFile) -> int:
    key = KeyMetadata(file.key, file.prefix, len(file.data))
    stored = DecryptedFile(storage, key, None, ExpectedFile("t", "s3://b/f"), False)
    with _parquet.opened("t", stored) as opened:
        batches: Iterable[Any] = opened.batches(opened.schema.names, None)
        return sum(len(batch) for batch in batches)


def changed(file: File, old: bytes, new: bytes) -> bytes:
    footer = file.data[file.footer :]
    assert old in footer[:64]
    return footer.replace(old, new, 1)


@pytest.mark.parametrize("count", [30, 1000])
def test_the_footer_that_was_checked_is_the_one_that_is_used(count: int) -> None:
    """Also one that is longer than the first read."""
    file = parquet(rows=count, groups=count // 10)
    storage = Storage(file, changed(file, GCM, CTR))
    assert rows(file, storage) == count
    again = [one for one in storage.reads if one[1] > file.footer]
    assert len(again) == 1 + (len(file.data) - file.footer > 16 << 10)


def test_a_footer_that_can_be_read_in_two_ways() -> None:
    """Of two fields with one number, C++ merges what they say, and Java takes the last."""
    file = parquet()
    crypto = changed(file, GCM, GCM)
    end = (
        crypto.index(b"\x11\0\0\0") + 3
    )  # supply_aad_prefix; the ends of algorithm, of union and of all
    for variant in (
        crypto[:end] + b"\x0c\x02\x2c\x11\0\0" + crypto[end:],  # once more, AES_GCM_CTR_V1
        crypto[:end] + b"\x0c\x02\x1c\x11\0\0" + crypto[end:],
        crypto[: end - 1] + b"\x1c\0" + crypto[end - 1 :],  # a union of two
        crypto[:end] + b"\x28\x01x" + crypto[end:],  # a field that nobody knows
        changed(file, GCM, CTR),
        b"\xff" * len(crypto),
    ):
        footer = variant[:-8] + (len(variant) - 8).to_bytes(4, "little") + b"PARE"
        other = file.having(file.data[: file.footer] + footer)
        storage = Storage(other, footer)
        with pytest.raises(errors.NotSupportedError, match="Table t: .*is not encrypted with AES"):
            rows(other, storage)
        assert other.problem() is not None
