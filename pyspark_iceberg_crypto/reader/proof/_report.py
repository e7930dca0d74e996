"""What a verification in Python found: the report of `verify_table`, with the checked files as Python objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.evidence._evidence import TableEvidence
from pyspark_iceberg_crypto.reader.proof import _problems
from pyspark_iceberg_crypto.reader.proof._problems import UNREADABLE

_MOST_PROBLEMS = 1000


@dataclass(frozen=True)
class CheckedFile:
    """A file that was checked.

    Attributes:
        kind: what it is to the table: data, manifest, manifest list, ...
        path: where it is.
        format: what the table's metadata says it is, such as PARQUET.
        length: its length in bytes; -1: not known.
        magic: what its first bytes say; None: they could not be read.
        encrypted: whether that is an encrypted format.
        problem: what is wrong; None: nothing is.
        unchecked: whether the problem is that it could not be checked.
        code: the problem in one word, see `Problem`; None: no problem was found.
    """

    kind: str
    path: str
    format: str
    length: int
    magic: str | None
    encrypted: bool
    problem: str | None
    unchecked: bool
    code: str | None


@dataclass(frozen=True)
class ProofReport(TableEvidence):
    """A `TableReport` that was made without Spark, and can be signed where a KMS is at hand.

    Attributes:
        files: each file checked. A report that was read from JSON has none.
    """

    files: list[CheckedFile] = field(default_factory=list, repr=False, compare=False)


def summed(files: Iterable[CheckedFile], of_plaintext: str) -> dict[str, Any]:
    """Return what checked files add up to, as a report's JSON has it: counts by kind and magic, and problems.

    Args:
        files: the files.
        of_plaintext: what to do about plaintext, before what its own hint says; empty: nothing more.
    """
    sums: dict[tuple[str, str, bool], list[int]] = defaultdict(lambda: [0] * 6)
    problems: list[dict[str, Any]] = []
    wrong = unchecked = 0
    for file in files:
        group = sums[file.kind, file.magic or "", file.encrypted]
        places = [0]
        if file.problem is not None:
            wrong += not file.unchecked
            unchecked += file.unchecked
            places.append(4 if file.unchecked else 2)
            problems.append(_problem(file, of_plaintext))
        for place in places:
            group[place] += 1
            group[place + 1] += max(file.length, 0)
    return {
        "files": sum(one[0] for one in sums.values()),
        "bytes": sum(one[1] for one in sums.values()),
        "counts": [_count(group, of) for group, of in sorted(sums.items())],
        "problem_count": wrong,
        "unchecked_count": unchecked,
        "problems": sorted(problems, key=lambda one: (one["unchecked"], one["path"]))[
            :_MOST_PROBLEMS
        ],
    }


def _count(group: tuple[str, str, bool], sums: list[int]) -> dict[str, Any]:
    names = ("files", "bytes", "wrong_files", "wrong_bytes", "unchecked_files", "unchecked_bytes")
    kind, magic, encrypted = group
    told = {"kind": kind, "magic": magic or None, "encrypted": encrypted}
    return {**told, **dict(zip(names, sums, strict=True))}


def _problem(file: CheckedFile, of_plaintext: str) -> dict[str, Any]:
    code = file.code or UNREADABLE
    before = of_plaintext if code == _problems.PLAINTEXT else ""
    return {
        "kind": file.kind,
        "path": file.path,
        "problem": file.problem,
        "hint": before + _problems.hint(code, file.kind),
        "unchecked": file.unchecked,
        "code": code,
    }


def not_encrypted(table: str) -> Mapping[str, Any]:
    """Return the problem of a whole table that is not encrypted."""
    encrypt = _call("encrypt_table", table, "key_id => '<master key id>'")
    return {
        "kind": "table",
        "path": table,
        "problem": "it has no encryption.key-id: it is not encrypted",
        "hint": f"{encrypt} encrypts it in place.",
        "unchecked": False,
        "code": _problems.PLAINTEXT,
    }


def plaintext_left_hint(table: str) -> str:
    """Say what to do about the plaintext of a table that was encrypted in place."""
    called = _call("purge_plaintext", table, "dry_run => true")
    return (
        f"Anyone who can read the storage can read these rows. {called} lists the files, and without dry_run deletes "
        "them: call it when nobody needs the table as it was then. If this file is not among them: "
    )


def _call(procedure: str, table: str, more: str) -> str:
    """Return the call of a procedure in the table's catalog, as SQL has it; that of a path is not known."""
    catalog = "<catalog>" if _names.is_path(table) else table.partition(".")[0]
    literal = table.replace("\\", "\\\\").replace("'", "\\'")
    return f"CALL {catalog}.system.{procedure}(table => '{literal}', {more})"
