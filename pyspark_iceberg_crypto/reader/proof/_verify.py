"""The verification of a table: each file that it reaches is checked, and what was found is looked at twice."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import time
from typing import TypeVar

from pyspark_iceberg_crypto.errors import IcebergCryptoError
from pyspark_iceberg_crypto.reader.proof import _named, _problems, _report, _subject
from pyspark_iceberg_crypto.reader.proof._check import MAGIC, FileCheck, Found
from pyspark_iceberg_crypto.reader.proof._named import Named, NamedFiles
from pyspark_iceberg_crypto.reader.proof._problems import FileProblem
from pyspark_iceberg_crypto.reader.proof._report import CheckedFile, ProofReport
from pyspark_iceberg_crypto.reader.proof._subject import Subject
from pyspark_iceberg_crypto.reader.proof._tree import Listed, Tree

Progress = Callable[[str, int, int], None]
"""Called with the step, and how many files and bytes were checked so far, from one thread."""
Key = Callable[[], "bytes | None"]
One = TypeVar("One")
Other = TypeVar("Other")

_ATTEMPTS = 3  # to verify, or to look again, when what is checked expires before it can be read
_NAMED = {
    _problems.MANIFEST_LIST,
    _problems.STATISTICS,
    _problems.PARTITION_STATISTICS,
    _problems.METADATA_FILE,
}
_LEADING = {_problems.MANIFEST_LIST, _problems.MANIFEST}


@dataclass(frozen=True)
class Options:
    """How a table is verified.

    Attributes:
        depth: how much of each file is read.
        all_snapshots: whether what any metadata file of the log reaches is checked, or what the current snapshot,
            branches and tags reach.
        threads: how many files are checked side by side; None: as many as there are cores, and 8 at least, as much of
            the time goes by waiting for the storage.
        progress: called with how far it is.
    """

    depth: str = MAGIC
    all_snapshots: bool = False
    threads: int | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class _Row:
    """A file that was checked.

    Attributes:
        file: what was found.
        through: the manifest list above it; None: it is not below one.
        older: whether only expired snapshots reach it.
    """

    file: CheckedFile
    through: str | None
    older: bool

    @property
    def is_wrong(self) -> bool:
        return self.file.problem is not None

    @property
    def leads(self) -> bool:
        """Whether others are found by it."""
        return self.file.kind in _LEADING and not self.older


def verify(subject: Subject, options: Options) -> ProofReport:
    """Check the files that a table reaches.

    Raises:
        IcebergCryptoError: the check as a whole could not be done. What is wrong with single files, or kept them from
            being checked, is in the report.
    """
    start, then = time(), subject
    for _ in range(_ATTEMPTS):
        told = _subject.told(then, options.depth, options.all_snapshots)
        walk = _Walk(then, options)
        found = _SecondLook(then, options).of(walk.rows())
        if found is not None:
            return _reported(then, told, found, start)
        then = then.reload()
    raise _too_fast(subject.loaded.table)


def _reported(
    subject: Subject, told: dict[str, object], rows: list[_Row], start: float
) -> ProofReport:
    files = [row.file for row in rows]
    table = subject.loaded.table
    left = _report.plaintext_left_hint(table) if told["plaintext_metadata"] else ""
    sums = _report.summed(files, left)
    if subject.loaded.key_id is None and not subject.document.get("encryption-keys"):
        sums["problem_count"] += 1
        sums["problems"].insert(0, _report.not_encrypted(table))
    end = time()
    took = {
        "started_at": _subject.time(start),
        "ended_at": _subject.time(end),
        "seconds": round(end - start, 3),
        "ok": not sums["problem_count"] and not sums["unchecked_count"],
    }
    return ProofReport.of({**told, **took, **sums}, files=files)


class _Walk:
    """Checks what a table reaches, from its metadata down."""

    def __init__(
        self, subject: Subject, options: Options, only: Collection[str] | None = None
    ) -> None:
        """Read the metadata files.

        Args:
            subject: the table.
            options: how it is verified.
            only: the paths of the data and delete files to check; None: all. What leads to them is checked anyway.
        """
        self._options, self._only = options, only
        self._named = _named_files(subject, options)
        self._places = {path: place for place, path in enumerate(self._named.files)}
        self._tree = Tree(
            subject.loaded.table, subject.storage, subject.keys_with(self._named.older_keys)
        )
        self._check = FileCheck(options.depth, subject.settings.files_without_length)
        self._files = self._bytes = 0

    def rows(self) -> list[_Row]:
        """Check the files."""
        found = [
            _Row(_checked(_problems.METADATA_FILE, path, "json", one), None, False)
            for path, one in self._named.versions.items()
        ]
        workers = self._options.threads or max(8, os.cpu_count() or 1)
        with ThreadPoolExecutor(workers, "iceberg-crypto-verify") as pool:
            try:
                for step, rows in (
                    ("manifest lists", self._of_named(pool, workers)),
                    ("manifests and files", self._of_lists(pool, workers)),
                ):
                    for row in rows:
                        found.append(row)
                        self._tell(step, row.file.length)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return found

    def _tell(self, step: str, length: int) -> None:
        self._files += 1
        self._bytes += max(length, 0)
        if self._options.progress is not None:
            self._options.progress(step, self._files, self._bytes)

    def _of_named(self, pool: Executor, workers: int) -> Iterator[_Row]:
        """Check manifest lists and statistics; what the former list is kept for `_of_lists`."""
        self._manifests: dict[str, tuple[Named, Listed]] = {}
        named = sorted(self._named.files.values(), key=lambda one: one.older)
        for file, (row, below) in _side_by_side(pool, workers, self._look_at_named, named):
            if row is not None:
                yield row
            for one in below:
                self._manifests.setdefault(one.path, (file, one))

    def _look_at_named(self, file: Named) -> tuple[_Row | None, list[Listed]]:
        if self._is_gone(file.path, file.older):
            return None, []
        found = self._found(file, lambda: self._tree.known(file).key)
        below: list[Listed] = []
        if file.kind == _problems.MANIFEST_LIST:
            found, below = _listing(found, lambda: self._tree.manifests(file))
        through = file.path if file.kind == _problems.MANIFEST_LIST else None
        row = _Row(_checked(file.kind, file.path, file.format, found), through, file.older)
        return self._unless_gone(row), below

    def _of_lists(self, pool: Executor, workers: int) -> Iterator[_Row]:
        """Check manifests, and the files that they list, each once."""
        manifests = sorted(
            self._manifests.values(),
            key=lambda one: (one[0].older, self._places[one[0].path], one[1].path),
        )
        rows: deque[_Row] = deque()

        def files() -> Iterator[tuple[Named, Listed]]:
            seen: set[str] = set()
            looked = _side_by_side(pool, workers, self._look_at_manifest, manifests)
            for (above, _), (row, below) in looked:
                if row is not None:
                    rows.append(row)
                for one in below:
                    if one.path not in seen:
                        seen.add(one.path)
                        if self._only is None or one.path in self._only:
                            yield above, one

        for _, row in _side_by_side(pool, workers, self._look_at_file, files()):
            while rows:
                yield rows.popleft()
            if row is not None:
                yield row
        yield from rows

    def _look_at_manifest(self, of: tuple[Named, Listed]) -> tuple[_Row | None, list[Listed]]:
        above, manifest = of
        if self._is_gone(manifest.path, above.older):
            return None, []
        found = self._found(manifest, lambda: manifest.key)
        found, below = _listing(found, lambda: self._tree.files(manifest))
        return self._unless_gone(_row(above, manifest, found)), below

    def _look_at_file(self, of: tuple[Named, Listed]) -> _Row | None:
        above, file = of
        if self._is_gone(file.path, above.older):
            return None
        found = self._found(file, lambda: file.key)
        return self._unless_gone(_row(above, file, found))

    def _unless_gone(self, row: _Row) -> _Row | None:
        """Leave out what was found about a file that was deleted since it was found to be there."""
        is_unread = row.file.code in (_problems.MISSING, _problems.UNREADABLE)
        return None if is_unread and self._is_gone(row.file.path, row.older) else row

    def _is_gone(self, path: str, older: bool) -> bool:
        """Whether it is a file that only expired snapshots reach: these are deleted sooner or later."""
        try:
            return older and not self._tree.stored(path).exists()
        except Exception:  # noqa: BLE001 (the check says why)
            return False

    def _found(self, file: Named | Listed, key: Key) -> Found:
        try:
            key_metadata = None if self._check.depth == MAGIC else key()
            stored = self._tree.stored(file.path)
        except Exception as error:  # noqa: BLE001 (it is the finding)
            return Found(None, file.length, _problems.of_failure(error))
        return self._check.check(file.kind, file.format, stored, file.length, key_metadata)


def _named_files(subject: Subject, options: Options) -> NamedFiles:
    if not options.all_snapshots:
        return _named.of_refs(subject.document, subject.loaded.location)
    return _named.of_log(subject.storage, subject.document, subject.loaded.location)


def _listing(found: Found, below: Callable[[], list[Listed]]) -> tuple[Found, list[Listed]]:
    """Read what a file lists, unless it could not even be checked; that it cannot be read is a finding too."""
    if found.unchecked:
        return found, []
    try:
        return found, below()
    except Exception as error:  # noqa: BLE001 (it is the finding)
        problem = (
            _problems.of_failure(error, "what it lists cannot be read: ")
            if found.problem is None
            else FileProblem(
                found.problem.code, f"{found.problem.words}; what it lists was not checked"
            )
        )
        return Found(found.magic, found.length, problem), []


def _row(above: Named, file: Listed, found: Found) -> _Row:
    return _Row(_checked(file.kind, file.path, file.format, found), above.path, above.older)


def _checked(kind: str, path: str, form: str, found: Found) -> CheckedFile:
    problem = found.problem
    return CheckedFile(
        kind,
        path,
        form,
        found.length,
        found.magic,
        found.encrypted,
        None if problem is None else problem.words,
        found.unchecked,
        None if problem is None else problem.code,
    )


def _side_by_side(
    pool: Executor, width: int, function: Callable[[One], Other], inputs: Iterable[One]
) -> Iterator[tuple[One, Other]]:
    """Do something to many things, some at the same time; in their order, and no more ahead than is needed."""
    pending: deque[tuple[One, Future[Other]]] = deque()
    for one in inputs:
        pending.append((one, pool.submit(function, one)))
        if len(pending) > 4 * width:
            first, done = pending.popleft()
            yield first, done.result()
    for first, done in pending:
        yield first, done.result()


@dataclass
class _SecondLook:
    """Whether what was found holds, as the table is now.

    Maintenance beside a verification deletes files that are no longer reached: of snapshots that expire, of metadata
    that leaves the log. Nobody is to be accused of that. What the table reaches as before stands; only what was found
    through something that is gone is looked for again, and of the files' bytes no others are read.
    """

    then: Subject
    options: Options

    def of(self, rows: list[_Row]) -> list[_Row] | None:
        """Look again, if something is wrong and the table has changed.

        Returns:
            what was found, without what nothing reaches any longer; None: the table has to be verified once more.
        """
        found = [row for row in rows if row.is_wrong]
        is_suspect = bool(found)
        for _ in range(_ATTEMPTS if is_suspect else 0):
            now = self.then.reload()
            self._require_same_table(now)
            if self.then.is_same(now):
                return rows
            suspects = self._through_what_is_gone(found, now)
            if not suspects:
                return rows
            outcomes = {row.file.path: row for row in _Walk(now, self.options, suspects).rows()}
            wrong = {path for path, row in outcomes.items() if row.is_wrong}
            lost = [outcomes[path] for path in wrong - suspects.keys() if outcomes[path].leads]
            if not lost:
                # what is below a list that is gone may be reached through another one by now
                if any(row.leads for path, row in suspects.items() if path not in wrong):
                    return None
                kept = [row for row in rows if row.file.path not in suspects]
                return kept + [row for path, row in outcomes.items() if path in suspects]
            # was it lost before, or did it go just now?
            paths = {row.file.path for row in found}
            if any(row.file.path in paths for row in lost) or now.is_same(now.reload()):
                return rows
            is_suspect = len(suspects) == len(found)  # else there is something to report
            if not is_suspect:
                return rows
        if is_suspect:
            raise _too_fast(self.then.loaded.table)
        return rows

    def _through_what_is_gone(self, found: list[_Row], now: Subject) -> dict[str, _Row]:
        """Return those that were found through a list that no snapshot has now, or are named by nothing."""
        in_force = (
            _named.of_log(now.storage, now.document, now.loaded.location)
            if self.options.all_snapshots
            else _named.of_snapshots(now.document)
        )
        names = {path for path, file in in_force.files.items() if not file.older}
        names |= in_force.versions.keys()
        if not self.options.all_snapshots:
            names.add(self.then.loaded.location)  # found about what was loaded
        return {
            row.file.path: row
            for row in found
            if (row.file.path if row.file.kind in _NAMED else row.through) not in names
        }

    def _require_same_table(self, now: Subject) -> None:
        if self.then.document.get("table-uuid") != now.document.get("table-uuid"):
            raise IcebergCryptoError(
                f"Table {self.then.loaded.table}: it was dropped while it was verified, and another one was created "
                "under its name",
                "Verify it again.",
            )


def _too_fast(table: str) -> IcebergCryptoError:
    return IcebergCryptoError(
        f"Table {table}: its snapshots expire faster than they can be verified",
        "That says nothing about the table. Verify it again, with a tag on the snapshot or when no maintenance runs.",
    )
