"""Reports as data: what was found on a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    VerificationFailedError,
    VerificationIncompleteError,
)
from pyspark_iceberg_crypto.reports._text import plural

Report = TypeVar("Report", bound="TableReport")
Part = TypeVar("Part")
# Exit codes: all is encrypted, something is not, it could not be checked.
OK, PROBLEM, UNCHECKED = 0, 1, 2
NOT_OF_FILES = ("master", "kek", "value")  # kinds of keys that a report lists one by one
METADATA = "metadata file"  # a kind of file


@dataclass(frozen=True)
class FileCount:
    """How many files of one kind have one format.

    Attributes:
        kind: what they are to the table: data, manifest, manifest list, deletion vectors, ...
        magic: what their first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ...; None: not readable.
        encrypted: whether that is an encrypted format.
        files: how many there are.
        bytes: their length together.
        wrong_files: how many of them have a problem, whatever their first bytes say.
        wrong_bytes: the length of those.
        unchecked_files: how many of them could not be checked.
        unchecked_bytes: the length of those.
    """

    kind: str
    magic: str | None
    encrypted: bool
    files: int
    bytes: int
    wrong_files: int = 0
    wrong_bytes: int = 0
    unchecked_files: int = 0
    unchecked_bytes: int = 0


@dataclass(frozen=True)
class Problem:
    """Something wrong with a table or one of its files, or a file that could not be checked.

    Attributes:
        kind: what the file is to the table.
        path: the file; empty when the problem is the table's.
        problem: what is wrong.
        hint: what to do about it.
        unchecked: True: it could not be checked, so nothing is known of it.
        code: what is wrong, in one word: plaintext, missing, truncated, appended, no-key, no-length, wrong-format,
            tampered, unauthenticated, unreadable.
    """

    kind: str
    path: str
    problem: str
    hint: str
    unchecked: bool = False
    code: str = ""


@dataclass(frozen=True)
class SnapshotTotal:
    """A snapshot in a table's history.

    Attributes:
        snapshot_id: its id.
        timestamp: when it was committed: ISO 8601, UTC.
        files: data files in the table then, by the snapshot's summary; None if that does not say.
        bytes: their length together; None if the summary does not say.
    """

    snapshot_id: int
    timestamp: str
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class TableReport:
    """What was found on checking a table. ``schemas/verify-report-1.json`` describes it as JSON.

    Attributes:
        ok: the table has a key id, each file was checked, and each is encrypted.
        table: the table's full name.
        key_id: the master key's id; None on a table without encryption.
        format_version: Iceberg's format version of the table.
        metadata_authenticated: whether each load of the table checks that nobody changed its metadata in the
            storage. ``ok`` does not say that: it is about the files that the metadata names.
        metadata_authentication: what authenticates it, or why nothing does.
        all_snapshots: whether files of all snapshots were checked, or those of the current one, branches and tags.
        snapshots: how many snapshots were checked.
        file_count: how many files were checked.
        byte_count: their length together.
        seconds: how long it took.
        counts: files by kind and magic.
        problem_count: how many problems there are.
        problems: the first thousand of them.
        unchecked_count: how many files could not be checked.
        depth: what was checked of each file: magic, structure or deep.
        sample: the share of data and delete files that was checked; 1.0 is all.
        seed: which sample it was.
        strays: whether files below the table's folder were looked for that no metadata reaches.
        left_out_files: how many data and delete files were not in the sample.
        left_out_bytes: their length together.
        resume: the folder where outcomes are recorded; None: none are.
        resumed_files: how many files were not read again, because they were recorded there as right.
        record: of outcomes that were recorded: folder; index, a file in it that lists the files of outcomes and their
            hashes; sha256 of the index; oldest, when the oldest of the checks was made; versions of this project that
            made them; files, how many data and delete files were right. None: none were recorded.
        since: of a report that rests on an earlier one, for resumed_files: key_id, signed_at and mac of that one's
            signature; recheck, the share that was checked again; rechecked_files, how many files that were;
            unsigned_files, how many of resumed_files that report had taken over from outcomes that nobody had signed.
            None: it rests on none.
        folder: the folder that was checked without a catalog, and then ``table``, too; None: a table was checked.
        table_uuid: the table's UUID.
        location: the table's folder.
        metadata_location: the metadata file that was current.
        metadata_sha256: the SHA-256 of that file as it is stored, in hex.
        current_snapshot_id: the current snapshot; None: the table is empty.
        snapshot_ids: the snapshots that were checked, newest first, at most a thousand.
        branches: the table's branches besides main; they were checked.
        tags: its tags; they were checked.
        plaintext_metadata: of a table that was encrypted in place, the earlier metadata, as long as the files that it
            reaches were not purged: they are plaintext. ``ok`` is about those that the table has now.
        versions: what checked it: iceberg_crypto, iceberg, spark, java; without Spark iceberg_crypto, pyiceberg,
            python.
        started_at: when the check began: ISO 8601, UTC.
        ended_at: when it ended.
        snapshot_history: the table's snapshots, at most a thousand; empty: not listed, as of many tables.
        encryption_keys: the table's keys, as ``encryption_keys`` gives them; empty: they were not asked for.
        kms: which KMS has the master key, and where it is; None: the table has no master key, or its catalog is not
            one of this project.
        schema_version: the version of the JSON schema.
        signature: what ``sign`` adds; None: the report is not signed.
    """

    ok: bool
    table: str
    key_id: str | None
    format_version: int
    metadata_authenticated: bool
    metadata_authentication: str
    all_snapshots: bool
    snapshots: int
    file_count: int
    byte_count: int
    seconds: float
    counts: list[FileCount]
    problem_count: int
    problems: list[Problem]
    unchecked_count: int = 0
    depth: str = "magic"
    sample: float = 1.0
    seed: int | None = None
    strays: bool = False
    left_out_files: int = 0
    left_out_bytes: int = 0
    resume: str | None = None
    resumed_files: int = 0
    record: dict[str, Any] | None = None
    since: dict[str, Any] | None = None
    folder: str | None = None
    table_uuid: str | None = None
    location: str | None = None
    metadata_location: str | None = None
    metadata_sha256: str | None = None
    current_snapshot_id: int | None = None
    snapshot_ids: list[int] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    plaintext_metadata: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    started_at: str | None = None
    ended_at: str | None = None
    snapshot_history: list[SnapshotTotal] = field(default_factory=list)
    encryption_keys: list[dict[str, Any]] = field(default_factory=list)
    kms: str | None = None
    schema_version: int = 1
    signature: dict[str, str] | None = None

    @classmethod
    def of(cls: type[Report], found: Mapping[str, Any], **more: Any) -> Report:
        """Make a report of the JVM's JSON, or of a report's own; what an older one lacks has its default.

        Raises:
            ConfigurationError: it contradicts itself.
            KeyError, TypeError, ValueError: it is not a report.
        """
        if found.get("folder") is not None:
            found = {**_FOLDER, "table": found["folder"], **found}
        told = {one.name: found[one.name] for one in fields(TableReport) if one.name in found}
        for name in ("file", "byte"):
            told[f"{name}_count"] = found.get(f"{name}_count", found.get(f"{name}s"))
        told["counts"] = [_part(FileCount, count) for count in found["counts"]]
        told["problems"] = [
            _part(Problem, {name: "" if value is None else value for name, value in one.items()})
            for one in found["problems"]
        ]
        told["snapshot_history"] = [
            _part(SnapshotTotal, one) for one in found.get("snapshot_history") or ()
        ]
        made = cls(**told, **more)
        _refuse_contradiction(made)
        # never ok when something is wrong, or unknown, no matter who said so
        right = all(by_state(count).keys() <= {"good", "plain"} for count in made.counts)
        is_ok = made.ok is True and right and not (made.problem_count or made.unchecked_count)
        return made if is_ok else _not_ok(made)

    @property
    def exit_code(self) -> int:
        """The exit code: 0 everything is encrypted, 1 a problem, 2 it could not be checked."""
        if self.ok:
            return OK
        return UNCHECKED if self.unchecked_count and not self.problem_count else PROBLEM

    @property
    def wrong(self) -> list[Problem]:
        """The problems that are findings about the table."""
        return [problem for problem in self.problems if not problem.unchecked]

    @property
    def unchecked(self) -> list[Problem]:
        """The problems that are files which could not be checked."""
        return [problem for problem in self.problems if problem.unchecked]

    def with_keys(self: Report, keys: Iterable[Any]) -> Report:
        """Return this report with the table's master keys, KEKs and value keys; keys of single files are left out.

        Args:
            keys: the rows of ``encryption_keys(spark, table)``.
        """
        rows = [_plain(key) for key in keys]
        kept = [row for row in rows if row["kind"] in NOT_OF_FILES]
        return replace(self, encryption_keys=kept)

    def raise_for_problems(self) -> None:
        """Raise an error unless everything was checked and is encrypted; for pipelines.

        Raises:
            VerificationFailedError: there is a problem; its ``report`` is this one.
            VerificationIncompleteError: no problem was found, but something could not be checked.
        """
        if self.ok:
            return
        is_wrong = self.exit_code == PROBLEM
        listed = [one for one in self.problems if one.unchecked != is_wrong]
        count = self.problem_count if is_wrong else self.unchecked_count
        told = [f"{one.kind} {one.path}: {one.problem}".strip() for one in listed[:3]]
        what = "failed verification" if is_wrong else "was not fully verified"
        kind = VerificationFailedError if is_wrong else VerificationIncompleteError
        said = plural(count, "problem" if is_wrong else "file")
        said += "" if is_wrong else " that could not be checked"
        raise kind(
            f"{self.table} {what}: {said}" + "".join(f"\n  {one}" for one in told),
            next((one.hint for one in listed if one.hint), "the report has the details"),
            self,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of files, as the JSON schema describes it."""
        told = {one.name: _plain(getattr(self, one.name)) for one in fields(TableReport)}
        return {"schema_version": told.pop("schema_version"), **told}


# What is not known of a folder.
_FOLDER = {
    "key_id": None,
    "format_version": 0,
    "metadata_authenticated": False,
    "metadata_authentication": "a folder has none",
    "all_snapshots": False,
    "snapshots": 0,
}


def by_state(count: FileCount) -> dict[str, tuple[int, int]]:
    """Return how many files are in which state, and their bytes: good, bad, wrong, open or plain.

    A file with a problem is not good, whatever it starts with.
    """
    usual = _usual(count)
    told = {usual: (count.files, count.bytes)}
    for known, files, size_of in (
        (_wrong(count, usual), count.wrong_files, count.wrong_bytes),
        ("open", count.unchecked_files, count.unchecked_bytes),
    ):
        if files and known != usual:
            all_files, all_bytes = told[usual]
            told[usual] = (all_files - files, all_bytes - size_of)
            told[known] = (files, size_of)
    return {known: sums for known, sums in told.items() if sums[0]}


def _wrong(count: FileCount, usual: str) -> str:
    """Return what a file with a problem is: other JSON than metadata should be encrypted, a log of Delta say."""
    is_json = count.magic == "JSON" and count.kind != METADATA
    return "bad" if usual == "bad" or is_json else "wrong"


def _usual(count: FileCount) -> str:
    """Return what is known of files without a problem.

    Iceberg encrypts no metadata.json. Other JSON that should be encrypted is among the problems.
    """
    if count.encrypted:
        return "good"
    if count.kind == METADATA or count.magic in ("EMPTY", "JSON"):
        return "plain"
    return "bad" if count.magic else "open"


def _refuse_contradiction(report: TableReport) -> None:
    """Refuse a report whose parts are not its total: it would show one number, and prove another."""
    whole = (report.file_count, report.byte_count)
    parts = tuple(sum(getattr(one, name) for one in report.counts) for name in ("files", "bytes"))
    least = (
        min(one.wrong_files, one.unchecked_files, one.files - one.wrong_files - one.unchecked_files)
        for one in report.counts
    )
    if parts != whole or any(number < 0 for number in least):
        raise ConfigurationError(
            f"the report on {report.table} contradicts itself: it is on {plural(whole[0], 'file')} "
            f"({whole[1]:,} bytes), and its counts are of {plural(parts[0], 'file')} ({parts[1]:,} bytes)",
            "do not rely on it; verify the table again",
        )


def _not_ok(report: Report) -> Report:
    object.__setattr__(report, "ok", False)
    return report


def _part(kind: type[Part], found: Mapping[str, Any]) -> Part:
    """Make a part of a report; what a later version adds is left out."""
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: value for name, value in found.items() if name in known})


def _plain(value: Any) -> Any:
    """Return a value ready for JSON, which shares nothing with it."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
