"""A table's tree of files: manifest lists, then manifests, then data and delete files, with the keys of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO, InputFile
from pyiceberg.types import StructType

from pyspark_iceberg_crypto.errors import TamperedError
from pyspark_iceberg_crypto.reader import _ags1, _avro_end
from pyspark_iceberg_crypto.reader._bounded_avro import kind_of
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata
from pyspark_iceberg_crypto.reader._keys import TableKeys
from pyspark_iceberg_crypto.reader.proof import _problems
from pyspark_iceberg_crypto.reader.proof._named import Named
from pyspark_iceberg_crypto.reader.proof._problems import FoundError

# What is read of manifest lists and manifests, by the numbers of the Iceberg specification.
_LIST = (500, 501, 519)  # manifest_path, manifest_length, key_metadata
_FILE = (
    134,
    100,
    101,
    104,
    131,
)  # content, file_path, file_format, file_size_in_bytes, key_metadata
_STATUS, _DATA_FILE = 0, 2
_DELETED = 2


@dataclass(frozen=True)
class Listed:
    """A file as what lists it knows it, with its key.

    Attributes:
        kind: what it is to the table.
        path: its location.
        format: its format, as what lists it says.
        length: its length in bytes, as what lists it says; -1: it does not say.
        key: its key metadata, a secret; None: it has none.
        authentic: whether it is a manifest that has a key, of a list of which `TableKeys.proves_writer` holds.
    """

    kind: str
    path: str
    format: str
    length: int
    key: bytes | None = field(repr=False)
    authentic: bool = False


class Tree:
    """Reads what lists files, also what a table's own reader refuses: plaintext, and files without a length."""

    def __init__(self, table: str, storage: FileIO, keys: TableKeys) -> None:
        self._table, self._storage, self._keys = table, storage, keys

    def stored(self, path: str) -> InputFile:
        """Return a file as it is stored, not decrypted."""
        return self._storage.new_input(path)

    def key_of(self, file: Named) -> KeyMetadata | None:
        """Return the key of a manifest list or a statistics file; None when it has none.

        Raises:
            FoundError: the metadata has no such key.
            TamperedError: its key was changed.
            IcebergCryptoError: the KMS's own error.
        """
        if file.key_id is None:
            return None
        entry = self._keys.entries.get(file.key_id)
        kek = entry and self._keys.entries.get(entry.by or "")
        where = f"Table {self._table}: manifest list {file.path} cannot be read:"
        if entry is None:
            raise FoundError(
                _problems.NO_KEY, f"{where} its key {file.key_id} is not in encryption-keys"
            )
        if kek is None:
            raise FoundError(
                _problems.NO_KEY,
                f"{where} the KEK {entry.by} of its key {file.key_id} is not in encryption-keys",
            )
        return self._keys.of_manifest_list(file.key_id, ExpectedFile(self._table, file.path))

    def known(self, file: Named) -> Listed:
        """Return a manifest list or a statistics file with its key; for errors see `key_of`."""
        key = self.key_of(file)
        encoded = None if key is None else key.encode()
        return Listed(file.kind, file.path, file.format, file.length, encoded)

    def manifests(self, file: Named) -> list[Listed]:
        """Return the manifests of a manifest list."""
        own = self.key_of(file)
        authentic = own is not None and self._keys.proves_writer(file.key_id)
        rows, schema = self._rows(file.path, file.length, own, authentic)
        found = []
        for path, length, key in (_picked(row, schema, _LIST) for row in rows):
            form = "parquet" if path.endswith(".parquet") else "avro"
            is_authentic = authentic and bool(key)
            found.append(Listed(_problems.MANIFEST, path, form, length, key, is_authentic))
        return found

    def files(self, manifest: Listed) -> list[Listed]:
        """Return the live data or delete files of a manifest."""
        key = manifest.key and KeyMetadata.decode(
            bytes(manifest.key), ExpectedFile(self._table, manifest.path)
        )
        rows, schema = self._rows(manifest.path, manifest.length, key or None, manifest.authentic)
        of_file: Any = schema.field(_DATA_FILE)
        found = []
        for status, file in (_picked(row, schema, (_STATUS, _DATA_FILE)) for row in rows):
            if status != _DELETED:
                content, path, form, length, own = _picked(file, of_file.field_type, _FILE)
                kind = _problems.of_content(content or 0, form)
                found.append(Listed(kind, path, form.upper(), length, own))
        return found

    def _rows(
        self, path: str, listed: int, key: KeyMetadata | None, authentic: bool
    ) -> tuple[list[Any], StructType]:
        """Read an Avro file with all that its writer wrote; not authentic, it is plaintext or named by plaintext."""

        def opened() -> Any:
            stored = self.stored(path)
            return stored.open() if key is None else self._decrypted(stored, listed, key)

        with kind_of(authentic)(_Opened(opened)) as file:  # type: ignore[arg-type]
            return list(file), file.schema.as_struct()

    def _decrypted(self, stored: InputFile, listed: int, key: KeyMetadata) -> _ags1.DecryptedStream:
        length = len(stored)
        is_known = key.length is not None or _ags1.fits_listed(listed, length)
        written = key.length
        if written is None:
            written = length if is_known or listed < 0 else listed
        file = ExpectedFile(self._table, stored.location, written)
        if length != written:
            code = _problems.TRUNCATED if length < written else _problems.APPENDED
            raise FoundError(code, file.of_other_length(length).message)
        stream = _ags1.DecryptedStream(stored.open(), key, file)
        if not is_known and stream.size() and stream.size() % _ags1.BLOCK == 0:
            try:
                _avro_end.check(stream, file)
            except TamperedError as error:
                raise FoundError(_problems.TRUNCATED, error.message) from error
        return stream


def _picked(row: Any, schema: StructType, ids: tuple[int, ...]) -> list[Any]:
    """Return fields of a record by their ids; None for one that its writer left out."""
    places = {one.field_id: place for place, one in enumerate(schema.fields)}
    return [row[places[one]] if one in places else None for one in ids]


class _Opened:
    """As much of PyIceberg's `InputFile` as its Avro reader uses."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self.open = opened
