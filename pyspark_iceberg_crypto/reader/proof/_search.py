"""The search for one file of a table, with its key: in the metadata itself, then in what snapshots list."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark_iceberg_crypto.errors import ConfigurationError, IcebergCryptoError
from pyspark_iceberg_crypto.reader.proof import _named, _problems
from pyspark_iceberg_crypto.reader.proof._named import Named
from pyspark_iceberg_crypto.reader.proof._subject import Subject
from pyspark_iceberg_crypto.reader.proof._tree import Listed, Tree


def find(subject: Subject, path: str) -> Listed:
    """Look for a file.

    Args:
        subject: the table.
        path: the file's location; a local one may be without its scheme.

    Raises:
        ConfigurationError: no snapshot reaches it.
        IcebergCryptoError: it is not found, and a manifest or a manifest list could not be read.
    """
    return _Search(subject, _bare(path)).found()


def _bare(path: str) -> str:
    return re.sub("^file:/*", "/", path)


class _Search:
    def __init__(self, subject: Subject, wanted: str) -> None:
        self._subject, self._wanted = subject, wanted
        self._tree = Tree(subject.loaded.table, subject.storage, subject.keys)
        self._unreadable: Exception | None = (
            None  # what could not be read first, which may have the file
        )

    def found(self) -> Listed:
        document = self._subject.document
        named = _named.of_snapshots(document).files.values()
        for file in named:
            if _bare(file.path) == self._wanted:
                return self._tree.known(file)
        lists = [file for file in named if file.kind == _problems.MANIFEST_LIST]
        current = _named.current_snapshot_id(document)
        path_of = {
            one["snapshot-id"]: one.get("manifest-list") for one in document.get("snapshots") or []
        }
        first = [one for one in lists if one.path == path_of.get(current)]
        others = [one for one in lists if one not in first]
        for some in (first, others):
            if found := self._below(some):
                return found
        table = self._subject.loaded.table
        if self._unreadable is not None:
            problem = _problems.of_failure(self._unreadable)
            if isinstance(self._unreadable, IcebergCryptoError):
                raise self._unreadable
            raise IcebergCryptoError(
                f"Table {table}: not all manifests could be read to find {self._wanted}: {problem.words}",
                "Verify the table: its report says which, and what to do.",
            ) from self._unreadable
        raise ConfigurationError(
            f"Table {table}: no snapshot of it reaches the file {self._wanted}",
            "Give the path as the table has it (SELECT file_path FROM <table>.all_files). The key of a file goes with "
            "its last snapshot; --key-file takes one from elsewhere.",
        )

    def _below(self, lists: Iterable[Named]) -> Listed | None:
        manifests: dict[str, Listed] = {}
        for one in lists:
            try:
                for manifest in self._tree.manifests(one):
                    manifests.setdefault(manifest.path, manifest)
            except Exception as error:  # noqa: BLE001 (the file may be elsewhere)
                self._unreadable = self._unreadable or error
        for manifest in manifests.values():
            if _bare(manifest.path) == self._wanted:
                return manifest
            try:
                files = self._tree.files(manifest)
            except Exception as error:  # noqa: BLE001 (the file may be elsewhere)
                self._unreadable = self._unreadable or error
                continue
            for file in files:
                if _bare(file.path) == self._wanted:
                    return file
        return None
