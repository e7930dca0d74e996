"""The files of an encrypted table as PyIceberg opens them: decrypted, of the length that was written, or refused."""

from __future__ import annotations

import copy
import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakValueDictionary

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

from pyspark_iceberg_crypto.errors import IcebergCryptoError, NotSupportedError
from pyspark_iceberg_crypto.reader import _ags1, _avro_end
from pyspark_iceberg_crypto.reader._expected import ExpectedFile
from pyspark_iceberg_crypto.reader._key_metadata import KeyMetadata

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.reader._keys import TableKeys
    from pyspark_iceberg_crypto.reader._manifests import EncryptedDataFile
    from pyspark_iceberg_crypto.reader._pyiceberg import ManifestFile
    from pyspark_iceberg_crypto.reader._settings import Settings

_LISTS = 4  # whose manifests, with their keys, are kept


@dataclass(frozen=True)
class Listed:
    """What lists a file says of it.

    Attributes:
        key_metadata: its key metadata; None: it is not encrypted.
        length: its length in bytes; None: that is not listed.
        pickled: whether it may be pickled.
    """

    key_metadata: bytes | None = field(repr=False)
    length: int | None
    pickled: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.pickled:
            refuse_pickling("A file's key")
        return Listed, (self.key_metadata, self.length, True)


# What reads files of storages; where the KMS and the catalog are, and how to log in there, is not among that.
_PICKLED = ("s3.", "gcs.", "adls.", "hdfs.", "hf.", "client.")
_PICKLED_TOO = ("py-io-impl", "buffer-size", "DEFAULT_SCHEME", "DEFAULT_NETLOC")


class EncryptedFileIO(FileIO):
    """Reads a table's files, each with its own key. It writes none by their names alone, and deletes none."""

    def __init__(
        self,
        stored: FileIO,
        table: str,
        keys: TableKeys | None,
        settings: Settings,
        pickle_file_keys: bool = False,
    ) -> None:
        """Make the FileIO of one table.

        Args:
            stored: how files are read as they are stored.
            table: the table's full name.
            keys: the keys of the table's manifest lists; None in a process that only has those of tasks' files.
            settings: what is allowed beyond encrypted files with lengths.
            pickle_file_keys: see `open_table`.
        """
        super().__init__(stored.properties)
        self.stored = stored
        self.table = table
        self._keys = keys
        self.settings = settings
        self.pickle_file_keys = pickle_file_keys
        self._planned: WeakValueDictionary[str, Listed] = WeakValueDictionary()
        self._lists: OrderedDict[str, list[ManifestFile]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def keys(self) -> TableKeys:
        """The keys of the table's manifest lists.

        Raises:
            NotSupportedError: they were not pickled with this.
        """
        if self._keys is None:
            raise NotSupportedError(
                f"Table {self.table} is not planned here: of a pickled scan, only tasks that came with it are read",
                "Plan where open_table was called, and pass the tasks; or call open_table here.",
            )
        return self._keys

    def new_input(self, location: str) -> InputFile:
        """Open a data or delete file of a planned task.

        Raises:
            NotSupportedError: no task with it is held: its key is in a manifest.
        """
        listed = self._planned.get(location)
        if listed is None:
            raise NotSupportedError(
                f"Table {self.table}: {location} is not opened by its name: its key is in a manifest",
                "Keep the tasks of scan().plan_files() while their files are read. For forensics, decrypt_file or "
                "`iceberg-crypto inspect FILE --table T --decrypt-to OUT` decrypts one file that is not Parquet.",
            )
        return self.open(location, listed)

    def planned(self, files: Iterable[EncryptedDataFile]) -> None:
        """Know files by their names for as long as one of the objects that list them is held.

        Raises:
            PlaintextFoundError: one has no key.
        """
        for file in files:
            self._require_key(file.file_path, file.listed)
            with self._lock:
                held = self._planned.setdefault(file.file_path, file.listed)
                if held != file.listed:
                    self._planned[file.file_path] = held = file.listed
            file.listed = held

    def open(self, location: str, listed: Listed) -> InputFile:
        """Open a file by what lists it.

        Raises:
            PlaintextFoundError: it has no key.
            IcebergCryptoError: its key metadata cannot be read.
        """
        self._require_key(location, listed)
        stored = self.stored.new_input(location)
        if listed.key_metadata is None:
            return stored
        file = ExpectedFile(self.table, location)
        key = KeyMetadata.decode(listed.key_metadata, file)
        return DecryptedFile(stored, key, listed.length, file, self.settings.files_without_length)

    def manifest_list(self, location: str, key_id: str | None) -> InputFile:
        """Open a manifest list.

        Args:
            location: where it is.
            key_id: what its snapshot has as `key-id`.
        """
        if key_id is None:
            return self.open(location, Listed(None, None))
        file = ExpectedFile(self.table, location)
        key = self.keys.of_manifest_list(key_id, file)
        stored = self.stored.new_input(location)
        return DecryptedFile(stored, key, None, file, self.settings.files_without_length)

    def listed_once(
        self, location: str, read: Callable[[], list[ManifestFile]]
    ) -> list[ManifestFile]:
        """Return the manifests of a list, which is read unless it is one of the last few."""
        with self._lock:
            if location in self._lists:
                self._lists.move_to_end(location)
                return self._lists[location]
        manifests = read()
        with self._lock:
            self._lists[location] = manifests
            while len(self._lists) > _LISTS:
                self._lists.popitem(last=False)
        return manifests

    def new_output(self, location: str) -> OutputFile:
        """Refuse to write: nobody would know the file's key."""
        refuse_writing(self.table)

    def encrypted_output(self, location: str, key_length: int) -> EncryptedOutput:
        """Write a manifest or a manifest list.

        Args:
            location: where it will be.
            key_length: of its key, in bytes.
        """
        return EncryptedOutput(self.table, self.parquet_output(location), key_length)

    def parquet_output(self, location: str) -> OutputFile:
        """Write a file that its writer encrypts."""
        return self.stored.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse to delete: a transaction deletes what it wrote and did not commit."""
        refuse_writing(self.table)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.pickle_file_keys:
            refuse_pickling(f"Table {self.table}")
        stored = copy.copy(self.stored)
        stored.properties = {
            name: value
            for name, value in stored.properties.items()
            if name.startswith(_PICKLED) or name in _PICKLED_TOO
        }
        made = partial(EncryptedFileIO, pickle_file_keys=True)
        return made, (stored, self.table, None, self.settings)

    def _require_key(self, location: str, listed: Listed) -> None:
        if listed.key_metadata is None and not self.settings.plaintext_files:
            raise ExpectedFile(self.table, location).plaintext()


class DecryptedFile(InputFile):
    """An encrypted file that must be what was written."""

    def __init__(
        self,
        stored: InputFile,
        key: KeyMetadata,
        listed: int | None,
        file: ExpectedFile,
        of_any_length: bool,
    ) -> None:
        """Nothing is read yet.

        Args:
            stored: the file as it is stored.
            key: what decrypts it.
            listed: the length that what lists it gives, in bytes.
            file: which one it is, for errors.
            of_any_length: whether it is read though nothing says how long it is.
        """
        super().__init__(stored.location)
        self.key = key
        self._stored = stored
        self._listed = listed
        self._file = file
        self._of_any_length = of_any_length

    def __len__(self) -> int:
        """Return the length of the content in bytes."""
        with self.open() as stream:
            return int(stream.seek(0, io.SEEK_END))

    def exists(self) -> bool:
        """Say whether the storage has it."""
        return self._stored.exists()

    def open(self, seekable: bool = True) -> Any:
        """Open the content of an AES GCM stream."""
        stored = self._open()
        try:
            length, known = self._length(stored)
            file = ExpectedFile(self._file.table, self._file.location, length)
            stream = _ags1.DecryptedStream(stored, self.key, file)
            if not known and stream.size() and stream.size() % _ags1.BLOCK == 0:
                _avro_end.check(stream, file)  # a full block need not be the last that was written
        except BaseException:
            stored.close()
            raise
        return io.BufferedReader(stream, _ags1.BLOCK)

    @contextmanager
    def as_stored(self) -> Iterator[tuple[InputStream, ExpectedFile]]:
        """Open the file as it is stored, for a Parquet reader; its length is compared.

        When the key metadata has no length, that of the manifest will do: the reader's own checks remain.
        """
        stored = self._open()
        with stored:
            has = _ags1.length_of(stored, self._file)
            length = self._listed if self.key.length is None else self.key.length
            length = has if length is None else length
            file = ExpectedFile(self._file.table, self._file.location, length)
            if has != file.length:
                raise file.of_other_length(has)
            stored.seek(0)
            yield stored, file

    def _open(self) -> InputStream:
        with reading(self._file):
            return self._stored.open()

    def _length(self, stored: InputStream) -> tuple[int | None, bool]:
        """The length that the file has to have, and whether anything authenticated gives it."""
        if self.key.length is not None:
            return self.key.length, True
        has = _ags1.length_of(stored, self._file)
        if self._listed and has == _ags1.listed_length(self._listed, has, self._file):
            return has, True
        return (has if self._of_any_length else None), False

    def __reduce__(self) -> NoReturn:
        refuse_pickling(f"Table {self._file.table}")


class EncryptedOutput(OutputFile):
    """A manifest or a manifest list that is being written, as an AES GCM stream."""

    _key: KeyMetadata | None = None

    def __init__(self, table: str, stored: OutputFile, key_length: int) -> None:
        """Nothing is written yet; `key_length` is in bytes, and `table` the table's full name, for errors."""
        super().__init__(stored.location)
        self._table = table
        self._stored = stored
        self._key_length = key_length

    def __len__(self) -> int:
        """Return its length in bytes as it is stored."""
        return self.written_with().length or 0

    def written_with(self) -> KeyMetadata:
        """Return what decrypts it, once it is closed."""
        if self._key is None:
            raise ValueError(f"{self.location} is not written yet")
        return self._key

    def exists(self) -> bool:
        """Say whether the storage has it."""
        return self._stored.exists()

    def to_input_file(self) -> NoReturn:
        """Refuse: what lists it has its key."""
        raise NotImplementedError

    def create(self, overwrite: bool = False) -> Any:
        """Begin: the content is encrypted and written when it is closed."""
        return _Content(self, overwrite)

    def write(self, content: bytes, overwrite: bool) -> None:
        """Encrypt the content with a key of its own, and write it."""
        data, self._key = _ags1.encrypt(content, self._key_length)
        with writing(self._table, self.location), self._stored.create(overwrite) as stream:
            stream.write(data)


class _Content:
    """The content of an encrypted file; not closed, nothing is written."""

    def __init__(self, output: EncryptedOutput, overwrite: bool) -> None:
        self._output, self._overwrite = output, overwrite
        self._held = io.BytesIO()
        self.write, self.tell = self._held.write, self._held.tell

    def close(self) -> None:
        self._output.write(self._held.getvalue(), self._overwrite)

    def __enter__(self) -> _Content:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()


@contextmanager
def reading(file: ExpectedFile) -> Iterator[None]:
    """Name table and file in whatever a storage or a reader raises; what is typed stays as it is."""
    try:
        yield
    except IcebergCryptoError:
        raise
    except Exception as error:
        raise file.unreadable(error) from error


@contextmanager
def writing(table: str, location: str) -> Iterator[None]:
    """Name table and file in whatever a storage or a writer raises; what is typed stays as it is."""
    try:
        yield
    except IcebergCryptoError:
        raise
    except Exception as error:
        raise IcebergCryptoError(
            f"Table {table}: {location} could not be written: {error}",
            "Nothing was committed. Check the storage, and that this login may write there.",
        ) from error


def refuse_writing(table: str) -> NoReturn:
    """Raise the error of every change of an encrypted table."""
    raise NotSupportedError(
        f"Table {table}: this change of an encrypted table is not made in Python",
        "Append, overwrite and delete rows, or update the schema; all else with Spark or Flink. Nothing was written: "
        "PyIceberg itself would write plaintext.",
    )


def refuse_pickling(what: str) -> NoReturn:
    """Raise the error of keys that would go to another process, or into a file."""
    raise NotSupportedError(
        f"{what} is not pickled: the keys of files would be in it",
        "Call open_table in the other process, which asks the KMS itself. Or, if whoever sees the pickle may read the "
        "files: with open_table(..., pickle_file_keys=True), scans and their tasks are pickled, with the files' keys.",
    )
