"""Snapshots, manifests and data files of an encrypted table, as PyIceberg's planning handles them.

They keep keys apart from the records, so that these show none: not in `inspect`, not in a log, and not pickled unless
the user allowed it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pydantic import Field
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry

from pyspark_iceberg_crypto.errors import NotSupportedError
from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import (
    EncryptedFileIO,
    Listed,
    reading,
    refuse_pickling,
)
from pyspark_iceberg_crypto.reader._pyiceberg import (
    KEY_OF_FILE,
    KEY_OF_MANIFEST,
    VECTOR_OF_FILE,
    DataFile,
    ManifestFile,
    Snapshot,
)


class EncryptedSnapshot(Snapshot):
    """A snapshot with the id of its manifest list's key."""

    key_id: str | None = Field(alias="key-id", default=None)

    def manifests(self, io: FileIO) -> list[ManifestFile]:
        """Read the manifest list.

        PyIceberg's own way of doing it has a cache for all tables, whose names of manifests one may have from another.
        """
        files = _encrypted(io)

        def read() -> list[ManifestFile]:
            file = files.manifest_list(self.manifest_list, self.key_id)
            with reading(ExpectedFile(files.table, self.manifest_list)):
                return [EncryptedManifest.of(one) for one in _pyiceberg.read_manifest_list(file)]

        return files.listed_once(self.manifest_list, read)


class EncryptedManifest(ManifestFile):
    """A manifest, with its key beside its record."""

    listed: Listed

    @classmethod
    def of(cls, manifest: ManifestFile) -> EncryptedManifest:
        """Take the key out of a record."""
        made = cls(*(manifest[i] for i in range(len(manifest))))
        made.listed = Listed(manifest.key_metadata, manifest.manifest_length)
        made[KEY_OF_MANIFEST] = None
        return made

    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
        """Read the manifest."""
        files = _encrypted(io)
        file = files.open(self.manifest_path, self.listed)
        with reading(ExpectedFile(files.table, self.manifest_path)):
            entries = _pyiceberg.entries(self, file, discard_deleted)
        for entry in entries:
            entry.data_file = EncryptedDataFile.of(entry.data_file, files.pickle_file_keys)
        return entries

    def __reduce__(self) -> NoReturn:
        refuse_pickling(f"Manifest {self.manifest_path}")


class EncryptedDataFile(DataFile):
    """A data or delete file, with its key beside its record."""

    listed: Listed

    @classmethod
    def of(cls, file: DataFile, pickled: bool) -> EncryptedDataFile:
        """Take the key out of a record."""
        listed = Listed(file.key_metadata, file.file_size_in_bytes, pickled)
        made = cls._made([file[i] for i in range(len(file))], file.spec_id, listed)
        made[KEY_OF_FILE] = None
        return made

    @classmethod
    def _made(cls, values: list[Any], spec_id: int, listed: Listed) -> EncryptedDataFile:
        made = cls(*values)
        made.spec_id = spec_id
        made.listed = listed
        return made

    @property
    def vector(self) -> tuple[str, int, int] | None:
        """Of a deletion vector the data file that it is for, and its blob's offset and length in bytes."""
        path, offset, length = (self[i] for i in VECTOR_OF_FILE)
        return None if path is None or offset is None or length is None else (path, offset, length)

    @property
    def column_sizes(self) -> dict[int, int]:
        """The sizes of columns, of which delete files have none: `inspect.entries()` expects them."""
        return super().column_sizes or {}

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.listed.pickled:
            refuse_pickling(f"File {self.file_path}")
        values = [self[i] for i in range(len(self))]
        return EncryptedDataFile._made, (values, self.spec_id, self.listed)


def _encrypted(io: FileIO) -> EncryptedFileIO:
    if not isinstance(io, EncryptedFileIO):
        raise NotSupportedError(
            f"{type(io).__name__} has no keys of this table", "Read it with the table's own io."
        )
    return io
