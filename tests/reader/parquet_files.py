"""Small encrypted Parquet files, whose modules are found again without the code that is tested."""

import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow
import pyarrow.parquet
import pyarrow.parquet.encryption

from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader.proof._check import DEEP, FileCheck, Found

KEY, PREFIX = bytes(range(16)), bytes(range(0xA0, 0xB0))


@dataclass(frozen=True)
class InMemory:
    """A file in a storage that has it in memory."""

    data: bytes
    location: str = "s3://b/f"

    def __len__(self) -> int:
        return len(self.data)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> io.BytesIO:
        return io.BytesIO(self.data)


@dataclass(frozen=True)
class File:
    """An encrypted file, and its key."""

    data: bytes
    key: bytes = KEY
    prefix: bytes = PREFIX
    form: str = "PARQUET"

    def check(self, depth: str = DEEP) -> Found:
        """As if it had always been as long as it is."""
        key = KeyMetadata(self.key, self.prefix, len(self.data)).encode()
        return FileCheck(depth).check("data", self.form, InMemory(self.data), len(self.data), key)

    def problem(self, depth: str = DEEP) -> tuple[str, str] | None:
        found = self.check(depth).problem
        return None if found is None else (found.code, found.words)

    def having(self, data: bytes) -> "File":
        return replace(self, data=data)

    def flipped(self, at: int, bit: int = 0) -> "File":
        changed = bytearray(self.data)
        changed[at] ^= 1 << bit
        return self.having(bytes(changed))

    @property
    def footer(self) -> int:
        return len(self.data) - 8 - int.from_bytes(self.data[-8:-4], "little")

    def modules(self) -> Iterator[tuple[int, int]]:
        """The start and the end of each module in front of the footer."""
        at = 4
        while at < self.footer:
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "little")
            yield at, end
            at = end
        assert at == self.footer, "the modules do not fill the file"


def parquet(
    rows: int = 30, key: bytes = KEY, groups: int = 1, stored: bool = False, **settings: Any
) -> File:
    """A file of one column with a dictionary and one without, and page indexes."""
    prefix = settings.pop("prefix", PREFIX)
    algorithm = settings.pop("algorithm", "AES_GCM_V1")
    table = pyarrow.table(
        {
            "id": pyarrow.array(range(rows), pyarrow.int64()),
            "name": [None if i % 11 == 0 else f"n{i % 5}" for i in range(rows)],
        }
    )
    out = io.BytesIO()
    options = {
        "row_group_size": max(1, -(-rows // groups)),
        "use_dictionary": ["name"],
        "write_page_index": True,
        "compression": "none",
        "store_schema": False,
        "max_rows_per_page": 10,
        "write_batch_size": 10,
    }
    pyarrow.parquet.write_table(
        table,
        out,
        encryption_properties=pyarrow.parquet.encryption.create_encryption_properties(
            key, aad_prefix=prefix, store_aad_prefix=stored, encryption_algorithm=algorithm
        ),
        **{**options, **settings},
    )
    return File(out.getvalue(), key, prefix or b"")


def pairs_of_one_length(file: File) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Modules that can change places in a file which stays as long."""
    for one, other in itertools.combinations(file.modules(), 2):
        if one[1] - one[0] == other[1] - other[0]:
            yield one, other


def swapped(file: File, one: tuple[int, int], other: tuple[int, int]) -> File:
    data = bytearray(file.data)
    data[slice(*one)], data[slice(*other)] = file.data[slice(*other)], file.data[slice(*one)]
    return file.having(bytes(data))
