"""Snapshots, manifests and data files of an encrypted table, as PyIceberg's planning handles them.

They keep keys apart from the records, so that these show none: not in `inspect`, not in a log, and not pickled unless
the user allowed it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pydantic import Field
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from pyspark_iceberg_crypto.errors import NotSupportedError
from pyspark_iceberg_crypto.reader import _pyiceberg
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._io import (
    EncryptedFileIO,
    EncryptedOutput,
    Listed,
    reading,
    refuse_pickling,
)
from pyspark_iceberg_crypto.reader._pyiceberg import (
    KEY_OF_FILE,
    KEY_OF_MANIFEST,
    MANIFEST_LIST_SCHEMA,
    ROW_ID_OF_FILE,
    ROW_ID_OF_MANIFEST,
    VECTOR_OF_FILE,
    AvroOutputFile,
    DataFile,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
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

        def manifests() -> list[ManifestFile]:
            file = files.manifest_list(self.manifest_list, self.key_id)
            with reading(ExpectedFile(files.table, self.manifest_list)):
                authentic = self.key_id is not None and files.keys.proves_writer(self.key_id)
                read = _pyiceberg.read_manifest_list(file, authentic)
                return [EncryptedManifest.of(one, authentic) for one in read]

        return files.listed_once(self.manifest_list, manifests)


class EncryptedManifest(ManifestFile):
    """A manifest, with its key beside its record.

    Attributes:
        authentic: whether it has a key, and is of a list of which `TableKeys.proves_writer` holds.
    """

    listed: Listed
    authentic: bool

    @classmethod
    def of(cls, manifest: ManifestFile, of_authentic: bool) -> EncryptedManifest:
        """Take the key out of a record; `of_authentic`: whether users of the master key wrote its list."""
        made = cls(*(manifest[i] for i in range(len(manifest))))
        made.listed = Listed(manifest.key_metadata, manifest.manifest_length)
        made.authentic = of_authentic and bool(manifest.key_metadata)
        made[KEY_OF_MANIFEST] = None
        return made

    def with_key(self) -> ManifestFile:
        """Return the record as a manifest list has it."""
        made = ManifestFile(*(self[i] for i in range(len(self))))
        made[KEY_OF_MANIFEST] = self.listed.key_metadata
        return made

    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
        """Read the manifest."""
        files = _encrypted(io)
        file = files.open(self.manifest_path, self.listed)
        with reading(ExpectedFile(files.table, self.manifest_path)):
            entries = _pyiceberg.entries(self, file, discard_deleted, self.authentic)
        for entry in entries:
            file_of_entry = EncryptedDataFile.of(entry.data_file, files.pickle_file_keys)
            file_of_entry.sequence_number = entry.sequence_number
            entry.data_file = file_of_entry
        return entries

    def __reduce__(self) -> NoReturn:
        refuse_pickling(f"Manifest {self.manifest_path}")


class EncryptedDataFile(DataFile):
    """A data or delete file, with its key beside its record.

    Attributes:
        sequence_number: when its rows were written; None if it was not committed.
    """

    listed: Listed
    sequence_number: int | None = None

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
    def first_row_id(self) -> int | None:
        """The id of a data file's first row."""
        found: int | None = self[ROW_ID_OF_FILE]
        return found

    def with_key(self) -> DataFile:
        """Return the record as a manifest has it."""
        made = DataFile(*(self[i] for i in range(len(self))))
        made[KEY_OF_FILE] = self.listed.key_metadata
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


class EncryptedManifestWriter(ManifestWriterV2):
    """Writes a manifest of format version 3, in which each file has its key."""

    def __init__(
        self, table: str, spec: PartitionSpec, schema: Schema, output: EncryptedOutput, *given: Any
    ) -> None:
        """As of PyIceberg's; `table` is the table's full name, for errors."""
        super().__init__(spec, schema, output, *given)
        self._table = table
        self._output = output

    @property
    def version(self) -> Any:
        """The format version."""
        return 3

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """Make the writer of its records."""
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=self._with_partition(self.version),
            schema_name="manifest_entry",
            metadata=self._meta,
        )

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        """Give an entry its file's key.

        Raises:
            PlaintextFoundError: a file that is added has none.
        """
        super().prepare_entry(entry)
        file = entry.data_file
        has_key = isinstance(file, EncryptedDataFile) and file.listed.key_metadata is not None
        if entry.status == ManifestEntryStatus.ADDED and not has_key:
            raise ExpectedFile(self._table, file.file_path).plaintext()
        record = file.with_key() if isinstance(file, EncryptedDataFile) else file
        return ManifestEntry(*(entry[i] for i in range(4)), record)

    def to_manifest_file(self) -> ManifestFile:
        """Return what a manifest list says of it, with its key."""
        made = super().to_manifest_file()
        made[KEY_OF_MANIFEST] = self._output.written_with().encode()
        return EncryptedManifest.of(
            ManifestFile(*(made[i] for i in range(ROW_ID_OF_MANIFEST)), None), True
        )


class EncryptedManifestListWriter(ManifestListWriterV2):
    """Writes a manifest list of format version 3, in which each manifest has its key and its first row id.

    Attributes:
        next_row_id: the first row id that none of the manifests has.
    """

    def __init__(self, output: EncryptedOutput, first_row_id: int, *given: Any) -> None:
        """As of PyIceberg's; `first_row_id` is that of the snapshot."""
        super().__init__(output, *given)
        self._meta |= {"first-row-id": str(first_row_id), "format-version": "3"}
        self.next_row_id = first_row_id

    def __enter__(self) -> EncryptedManifestListWriter:
        """Begin."""
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            file_schema=MANIFEST_LIST_SCHEMA,
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        """Give a manifest its key and, if it has data files and none yet, its first row id.

        Room is left for existing rows too: their files may have no row ids yet (specification, "First Row ID
        Assignment").
        """
        if not isinstance(manifest_file, EncryptedManifest):
            raise TypeError("a manifest without a key")
        made = super().prepare_manifest(manifest_file.with_key())
        if made.content == ManifestContent.DATA and made[ROW_ID_OF_MANIFEST] is None:
            made[ROW_ID_OF_MANIFEST] = self.next_row_id
            self.next_row_id += (made.existing_rows_count or 0) + (made.added_rows_count or 0)
        return made


def _encrypted(io: FileIO) -> EncryptedFileIO:
    if not isinstance(io, EncryptedFileIO):
        raise NotSupportedError(
            f"{type(io).__name__} has no keys of this table", "Read it with the table's own io."
        )
    return io
