"""Reports as data: what was found on a table, in a file, and on the way to the master keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any, TypeVar

Report = TypeVar("Report", bound="TableReport")
Part = TypeVar("Part")


@dataclass(frozen=True)
class FileCount:
    """How many files of one kind have one format.

    Attributes:
        kind: what they are to the table: data, manifest, manifest list, deletion vectors, ...
        magic: what their first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ...
        encrypted: whether that is an encrypted format.
        files: how many there are.
        bytes: their length together.
    """

    kind: str
    magic: str
    encrypted: bool
    files: int
    bytes: int


@dataclass(frozen=True)
class Problem:
    """Something wrong with a table or one of its files.

    Attributes:
        kind: what the file is to the table.
        path: the file; empty when the problem is the table's.
        problem: what is wrong.
        hint: what to do about it.
        unchecked: True: it could not be checked, so nothing is known of it.
        code: what is wrong, in one word: plaintext, truncated, tampered, missing, unreadable, stray, ...
    """

    kind: str
    path: str
    problem: str
    hint: str
    unchecked: bool = False
    code: str = ""


@dataclass(frozen=True)
class TableReport:
    """What was found on checking a table.

    Attributes:
        ok: the table has a key id, and each file that was checked is encrypted.
        table: the table's full name.
        key_id: the master key's id; None on a table without encryption.
        format_version: Iceberg's format version of the table.
        metadata_authenticated: whether each load of the table checks that nobody changed its metadata in the
            storage. ``ok`` does not say that: it is about the files that the metadata names.
        metadata_authentication: what authenticates it, or why nothing does.
        all_snapshots: whether files of all snapshots were checked, or the current one's.
        snapshots: how many snapshots were checked.
        file_count: how many files were checked.
        byte_count: their length together.
        seconds: how long it took.
        counts: files by kind and magic.
        problem_count: how many problems there are.
        problems: the first thousand of them.
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

    @classmethod
    def of(cls: type[Report], found: Mapping[str, Any], **more: Any) -> Report:
        """Make a report of the JVM's JSON."""
        told = {one.name: found[one.name] for one in fields(TableReport) if one.name in found}
        told["file_count"], told["byte_count"] = found["files"], found["bytes"]
        told["counts"] = [FileCount(**count) for count in found["counts"]]
        told["problems"] = [
            _part(Problem, {name: "" if value is None else value for name, value in one.items()})
            for one in found["problems"]
        ]
        return cls(**told, **more)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the list of files, ready for JSON."""
        found = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        found["counts"] = [asdict(count) for count in self.counts]
        found["problems"] = [asdict(problem) for problem in self.problems]
        return found


def _part(kind: type[Part], found: Mapping[str, Any]) -> Part:
    """Make a part of a report; what a later version adds is left out."""
    known = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True)
class FileReport:
    """What a file is, by its bytes. No key is needed to tell.

    Attributes:
        path: the file.
        length: its length in bytes.
        magic: what its first bytes say: PARE, AGS1 (encrypted), PAR1, AVRO, PUFFIN, ORC, JSON, EMPTY, OTHER.
        format: that, in words.
        encrypted: whether that is an encrypted format.
        block_size: AGS1: plaintext bytes in a block.
        block_count: AGS1: number of blocks.
        plaintext_length: AGS1: length of what is encrypted, in bytes, as the file's length tells it.
        algorithm: PARE: AES_GCM_V1 or AES_GCM_CTR_V1.
        footer_length: PARE: length of the footer, in bytes.
        aad_prefix_supplied: PARE: whether a reader must supply the AAD prefix.
    """

    path: str
    length: int
    magic: str
    format: str
    encrypted: bool
    block_size: int | None = None
    block_count: int | None = None
    plaintext_length: int | None = None
    algorithm: str | None = None
    footer_length: int | None = None
    aad_prefix_supplied: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the file, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value is not None}


class Status(str, Enum):
    """How a step went."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_REACHED = "not reached"


@dataclass(frozen=True)
class Step:
    """One step of the examination.

    Attributes:
        name: what was looked at.
        status: how it went.
        detail: what was found, or what is wrong.
        hint: how to mend it; empty when there is nothing to mend.
        key_id: the master key that was tried; None where it is not about one key.
    """

    name: str
    status: Status
    detail: str = ""
    hint: str = ""
    key_id: str | None = None


@dataclass(frozen=True)
class KeyReport:
    """What was found on examining the way to the master keys.

    Attributes:
        catalog: the catalog that was examined.
        steps: each step, in order.
    """

    catalog: str
    steps: list[Step]

    @property
    def ok(self) -> bool:
        """Whether no step failed, and at least one key made the round trip."""
        return not self.failed and self.complete

    @property
    def failed(self) -> bool:
        """Whether a step failed."""
        return any(step.status is Status.FAILED for step in self.steps)

    @property
    def complete(self) -> bool:
        """Whether every step was reached."""
        return all(step.status is not Status.NOT_REACHED for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        steps = [{**asdict(step), "status": step.status.value} for step in self.steps]
        return {"ok": self.ok, "catalog": self.catalog, "steps": steps}
