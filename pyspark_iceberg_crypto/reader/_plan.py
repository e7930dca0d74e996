"""Which files a scan reads, with which deletes (Iceberg specification, "Scan Planning")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain

from pyiceberg.manifest import DataFileContent, ManifestEntry
from pyiceberg.table import FileScanTask
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import Record

from pyspark_iceberg_crypto.reader._io import EncryptedFileIO
from pyspark_iceberg_crypto.reader._manifests import EncryptedDataFile
from pyspark_iceberg_crypto.reader._pyiceberg import (
    DataFile,
    DeleteFileIndex,
    ManifestFile,
    TableMetadata,
    TaskPlanner,
)

_Partition = tuple[int, tuple[object, ...]]


class Planner(TaskPlanner):
    """PyIceberg's planner, with equality deletes."""

    def plan_files(
        self,
        manifests: Iterable[ManifestFile],
        manifest_entry_filter: Callable[[ManifestEntry], bool] = lambda _: True,
    ) -> Iterable[FileScanTask]:
        """Plan the tasks of manifests."""
        data: list[ManifestEntry] = []
        positions, equality = DeleteFileIndex(), _EqualityDeletes(self.table_metadata)
        vectors: dict[str, list[ManifestEntry]] = defaultdict(list)
        for entry in chain.from_iterable(self.plan_manifest_entries(manifests)):
            file = entry.data_file
            if not manifest_entry_filter(entry):
                continue
            if file.content == DataFileContent.DATA:
                data.append(entry)
            elif file.content != DataFileContent.POSITION_DELETES:
                equality.add(entry)
            elif isinstance(file, EncryptedDataFile) and file.vector is not None:
                vectors[file.vector[0]].append(entry)
            else:
                positions.add_delete_file(entry, _hashed(file))
        tasks = []
        for entry in data:
            file, sequence = entry.data_file, entry.sequence_number or 0
            deletes = positions.for_data_file(sequence, file, _hashed(file))
            deletes |= {
                one.data_file
                for one in vectors.get(file.file_path, ())
                if (one.sequence_number or 0) >= sequence
            }
            deletes |= {*equality.of(sequence, file)}
            tasks.append(FileScanTask(file, deletes, self.residual(file)))
        know(self.io, tasks)
        return tasks


class _EqualityDeletes:
    """Equality deletes apply to older data files: of their partition, or to all if their spec has no partitions."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._specs = metadata.specs()
        self._global: list[ManifestEntry] = []
        self._of: dict[_Partition, list[ManifestEntry]] = defaultdict(list)

    def add(self, entry: ManifestEntry) -> None:
        fields = self._specs[entry.data_file.spec_id].fields
        if all(isinstance(one.transform, VoidTransform) for one in fields):
            self._global.append(entry)
        else:
            self._of[_partition(entry.data_file)].append(entry)

    def of(self, sequence: int, file: DataFile) -> list[DataFile]:
        entries = chain(self._global, self._of.get(_partition(file), ()))
        return [one.data_file for one in entries if (one.sequence_number or 0) > sequence]


def know(io: object, tasks: Iterable[FileScanTask]) -> None:
    """Let a table's FileIO open the files of tasks for as long as these are held."""
    if isinstance(io, EncryptedFileIO):
        files = (one for task in tasks for one in (task.file, *task.delete_files))
        io.planned(one for one in files if isinstance(one, EncryptedDataFile))


def _partition(file: DataFile) -> _Partition:
    values = file.partition or ()
    return file.spec_id, tuple(_equal(values[i]) for i in range(len(values)))


def _hashed(file: DataFile) -> Record:
    """A partition by which files are found: two of NaN are one."""
    return Record(*_partition(file)[1])


def _equal(value: object) -> object:
    return "NaN" if isinstance(value, float) and value != value else value
