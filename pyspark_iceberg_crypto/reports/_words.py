"""What a report says, in words: the same in a terminal, on a page and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark_iceberg_crypto.reports._data import (
    METADATA,
    OK,
    UNCHECKED,
    FileCount,
    TableReport,
    by_state,
)
from pyspark_iceberg_crypto.reports._text import agreeing, listed, moment, plural, size

STATES = {
    "bad": "PLAINTEXT",
    "wrong": "with a problem",  # though its format is right
    "open": "not checked",
    "good": "encrypted",
    "plain": "not encrypted",  # and nothing is wrong with that
}
MAX_SNAPSHOTS = 1000  # in a report's history
_DAMAGED = {"missing", "truncated", "appended", "no-key", "wrong-format", "tampered"}


@dataclass(frozen=True)
class Part:
    """Files of one kind and one format of which the same is known.

    Attributes:
        state: good (encrypted), bad (plaintext), wrong (another problem), open (not checked) or plain.
        word: the state in words.
    """

    count: FileCount
    state: str
    word: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Total:
    """All files in one state."""

    state: str
    word: str
    files: int
    bytes: int


@dataclass(frozen=True)
class CheckedSignature:
    """How a signature was found to be genuine.

    Attributes:
        at: when: ISO 8601, UTC.
        catalog: the catalog whose KMS was asked.
        required: whether the master key was named that must have signed.
    """

    at: str
    catalog: str
    required: bool


def states(report: TableReport) -> dict[str, str]:
    """Return the word for each state.

    Files with a problem are damaged if the report lists all problems, and no other ones. Of a folder only the format of
    its files is known.
    """
    good = STATES["good"] if report.folder is None else "of an encrypted format"
    codes = {problem.code for problem in report.wrong} - {"plaintext"}
    damaged = codes and codes <= _DAMAGED and report.problem_count <= len(report.wrong)
    return {**STATES, "good": good, "wrong": "damaged" if damaged else STATES["wrong"]}


def state_of(code: str) -> str:
    """Return the state of a file with a problem of this code."""
    return {"plaintext": "bad", "unreadable": "open"}.get(code, "wrong")


def parts_of(report: TableReport) -> list[Part]:
    """Part the files of a report by what is known of them."""
    return parts(report.counts, states(report))


def parts(counts: Iterable[FileCount], words: Mapping[str, str] = STATES) -> list[Part]:
    """Part files by what is known of them: a file with a problem is not good, whatever it starts with."""
    return [part for count in counts for part in _parts(count, words)]


def _parts(count: FileCount, words: Mapping[str, str]) -> Iterator[Part]:
    for known, (files, size_of) in by_state(count).items():
        never = known == "plain" and count.kind == METADATA
        yield Part(count, known, "never encrypted" if never else words[known], files, size_of)


def kind(exit_code: int) -> str:
    """Return the outcome of a report: good, bad or open (something could not be checked)."""
    return {OK: "good", UNCHECKED: "open"}.get(exit_code, "bad")


def mark(known: str) -> str:
    """Return the sign for that."""
    return {"good": "✓", "bad": "✗", "open": "?"}[known]


def word(report: TableReport) -> str:
    """Say the outcome in a word or two, and no more than was checked."""
    known = kind(report.exit_code)
    if known != "good":
        return {"bad": "problems found", "open": "not fully checked"}[known]
    if not file_count(report):
        return "no file yet"
    if report.sample < 1:
        return "no problem in the sample"
    if rests(report):
        return "no problem since the earlier report"
    return "encrypted" if report.folder is None else "of encrypted formats"


def left_out(encrypted: bool | None) -> str:
    """Say what is known of a table that was not verified."""
    known = {True: ", though it has a master key", False: "", None: ", could not be loaded"}
    return f"left out, not verified{known[encrypted]}"


def verdict(report: TableReport) -> str:
    """Say in one line what was found, and of which files."""
    return _found(report) + _rests(report) + _not_reached(report) + _left_behind(report)


def rests(report: TableReport) -> int:
    """How many files were not read again, because an earlier report that was signed vouches for them."""
    return report.resumed_files if report.since else 0


def earlier(report: TableReport) -> str:
    """Say which report that is."""
    since = report.since or {}
    at = moment(str(since.get("signed_at")))
    return f"the report that master key {since.get('key_id')!r} signed at {at}"


def _rests(report: TableReport) -> str:
    number = rests(report)
    if not number:
        return ""
    return (
        f"; {plural(number, 'file')} {agreeing(number, 'was', 'were')} not read again: {earlier(report)} vouches for "
        f"{agreeing(number, 'it', 'them')}"
    )


def _found(report: TableReport) -> str:
    if report.ok:
        return _good(report)
    said = _told(report, report.folder or f"{_where(report)} of {report.table}{_key(report)}")
    if any(problem.kind == "table" for problem in report.wrong):
        said = _told(report, _where(report))
        return f"{report.table} is not encrypted: {said[0].lower()}{said[1:]}"
    return f"Not proved: {said[0].lower()}{said[1:]}" if kind(report.exit_code) == "open" else said


def _good(report: TableReport) -> str:
    number = file_count(report)
    files = plural(number, "file")
    where = report.folder or f"{_where(report)} of {report.table}"
    if not number:
        return f"There is no file yet to encrypt in {where}"
    if report.sample < 1:
        return f"No problem was found in a sample of {files} in {where}"
    if rests(report):
        return f"No problem was found in {files} in {where}"
    said = "of encrypted formats" if report.folder is not None else f"encrypted{_key(report)}"
    return f"{all_files(number)} in {where} {agreeing(number, 'is', 'are')} {said}"


def _told(report: TableReport, where: str) -> str:
    """Say how many files are in which state."""
    number = file_count(report)
    found = totals(report)
    # problems of no file, or of a number of files that an older report does not have
    if not any(one.state != "good" for one in found):
        told = [f"{plural(report.problem_count, 'problem')} found"] if report.problem_count else []
        told += [f"{report.unchecked_count:,} not checked"] if report.unchecked_count else []
        return f"{', '.join(told) or 'Nothing proved'} in {plural(number, 'file')} in {where}"
    if len(found) == 1:
        return f"{all_files(number)} in {where} {_has(found[0])}"
    told = [f"{one.files:,} {_has(one)}" for one in found]
    return f"Of the {plural(number, 'file')} in {where}, {listed(told)}"


def _where(report: TableReport) -> str:
    return f"{reach(report)} and folders" if report.strays else reach(report)


def all_files(number: int) -> str:
    """Say all of so many files."""
    return "The one file" if number == 1 else f"All {plural(number, 'file')}"


def _has(total: Total) -> str:
    if total.state == "open":
        return "could not be checked"
    if total.word == STATES["wrong"]:
        return agreeing(total.files, "has a problem", "have a problem")
    return f"{agreeing(total.files, 'is', 'are')} {total.word}"


def _key(report: TableReport) -> str:
    return "" if report.key_id is None else f" (master key {report.key_id!r})"


def _not_reached(report: TableReport) -> str:
    """Say what was not checked on purpose."""
    if report.folder is not None:
        return without_keys([report])
    said = []
    if report.sample < 1:
        said.append(plural(report.left_out_files, "file"))
    if others := other_snapshots(report):
        said.append(others)
    return were_not_checked(said)


def were_not_checked(said: Sequence[str]) -> str:
    """Say at the end of a verdict what was not checked on purpose; nothing if there is nothing."""
    were = "was" if len(said) == 1 and said[0].startswith("1 ") else "were"
    return f"; {listed(said)} {were} not checked" if said else ""


def are_folders(reports: Sequence[TableReport]) -> bool:
    """Whether all reports are on folders, without a catalog."""
    return bool(reports) and all(one.folder is not None for one in reports)


def thing(reports: Sequence[TableReport]) -> str:
    """Say what they are on."""
    return "folder" if are_folders(reports) else "table"


def without_keys(folders: Iterable[TableReport]) -> str:
    """Say at the end of a verdict on folders what first bytes do not show."""
    deep = all(one.depth == "deep" for one in folders)
    return "" if deep else "; without their keys nothing more is known"


def other_snapshots(report: TableReport) -> str:
    """Say how many snapshots were not checked; nothing if the table has no others, and of a folder."""
    if report.all_snapshots or report.folder is not None:
        return ""
    known = len(report.snapshot_history)
    if not known or known >= MAX_SNAPSHOTS:
        return "other snapshots"
    others = known - report.snapshots
    return plural(others, "other snapshot") if others > 0 else ""


def _left_behind(report: TableReport) -> str:
    if not report.ok or report.plaintext_metadata is None:
        return ""
    return ". PLAINTEXT from before encrypt_table is still in the storage"


def totals(report: TableReport) -> list[Total]:
    """Add up the files that should be encrypted by their state, the most harmful first: `file_count` together."""
    said = [part for part in parts_of(report) if part.state != "plain"]
    return [
        Total(
            known,
            word,
            sum(part.files for part in said if part.state == known),
            sum(part.bytes for part in said if part.state == known),
        )
        for known, word in states(report).items()
        if any(part.state == known for part in said)
    ]


def file_count(report: TableReport) -> int:
    """How many files there are that should be encrypted: the number that every report shows."""
    return report.file_count - sum(part.files for part in never_encrypted(report))


def byte_count(report: TableReport) -> int:
    """Their length together."""
    return report.byte_count - sum(part.bytes for part in never_encrypted(report))


def never_encrypted(report: TableReport) -> list[Part]:
    """Return the other files, which may be plaintext: Iceberg never encrypts metadata files."""
    return [part for part in parts_of(report) if part.state == "plain"]


def reach(report: TableReport) -> str:
    """Say which files of a table were looked at."""
    if report.all_snapshots:
        return "all snapshots"
    of = [
        "the current snapshot",
        *([plural(len(report.branches), "branch")] if report.branches else []),
        *([plural(len(report.tags), "tag")] if report.tags else []),
    ]
    return listed(of)


def plaintext(report: TableReport) -> str:
    """Say where plaintext of a table that was encrypted in place still is; else nothing."""
    if report.plaintext_metadata is None:
        return ""
    return (
        "PLAINTEXT of this table from before encrypt_table is still in the storage: all files that "
        f"{report.plaintext_metadata} reaches. purge_plaintext lists them (dry_run) and deletes them; run it once "
        "nobody needs the table as it was then."
    )


def scope(report: TableReport) -> str:
    """Say in one line what was looked at, and how."""
    parts = [
        reach(report) if report.folder is None else "a folder, without a catalog",
        f"depth {report.depth}",
        *(["strays"] if report.strays else []),
        *(
            [f"{plural(report.resumed_files, 'file')} checked before"]
            if report.resumed_files
            else []
        ),
        *(
            [f"{report.since['rechecked_files']:,} of an earlier report again"]
            if report.since
            else []
        ),
        *([f"sample {report.sample:g}, seed {report.seed}"] if report.sample < 1 else []),
        size(byte_count(report)),
        f"{report.seconds:.1f} s",
    ]
    return ", ".join(parts)


def metadata(report: TableReport) -> str:
    """Say in one line whether the metadata that names the files is authenticated; of a folder: nothing."""
    if report.folder is not None:
        return ""
    verb = "is" if report.metadata_authenticated else "is not"
    return f"its metadata {verb} authenticated: {report.metadata_authentication}"


def signature(
    found: Mapping[str, str] | None, checked: CheckedSignature | None
) -> tuple[str, str, str]:
    """Say what is known of a report's signature: a state, a head, and a sentence.

    Args:
        found: the report's signature; None: it has none.
        checked: how it was found to be genuine; None: it was not checked.
    """
    if found is None:
        return "plain", "Not signed.", "Anyone who has held this report could have changed it."
    key, signed_at = found.get("key_id"), moment(str(found.get("signed_at")))
    if checked is None:
        return (
            "open",
            "Signature not checked.",
            f"The report claims to be signed with master key {key!r} at {signed_at}. This page does not show whether "
            "that is true.",
        )
    said = (
        f"Signed with master key {key!r} at {signed_at}. Checked with the KMS of catalog {checked.catalog} at "
        f"{moment(checked.at)}"
    )
    return (
        "good",
        "Signature genuine.",
        f"{said}{'' if checked.required else '; no particular master key was required'}.",
    )
