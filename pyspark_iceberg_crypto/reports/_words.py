"""What a report says, in words: the same in a terminal, on a page and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark_iceberg_crypto.reports._data import OK, UNCHECKED, FileCount, TableReport
from pyspark_iceberg_crypto.reports._text import plural, size

METADATA = "metadata file"
STATES = {
    "good": "encrypted",
    "bad": "PLAINTEXT",
    "wrong": "with a problem",  # though its format is right
    "open": "not checked",
    "plain": "not encrypted",  # and nothing is wrong with that
}
_NAMES = (
    "metadata.json is never encrypted: it holds the schema, properties, paths of manifest lists and counts. Names and "
    "lengths of files are visible to anyone who can list the storage."
)
_DEPTHS = {
    "magic": "The first bytes of each file were read: they show whether its format is an encrypted one.",
    "structure": "The header, block layout, footer and length of each file were checked against its key metadata. "
    "A change within its encrypted bytes would go unnoticed.",
    "deep": "Every byte of each file was read, and every authentication tag in it was checked with its key.",
}


@dataclass(frozen=True)
class Part:
    """Files of one kind and one format of which the same is known.

    Attributes:
        state: good (encrypted), bad (plaintext), wrong (another problem), open (not checked) or plain.
    """

    count: FileCount
    state: str
    files: int
    bytes: int

    @property
    def word(self) -> str:
        """Say the state."""
        return state_word(self.count.kind, self.state)


def state_word(kind_of_file: str, state: str) -> str:
    """Say the state of files of one kind."""
    never = state == "plain" and kind_of_file == METADATA
    return "never encrypted" if never else STATES[state]


def parts(counts: Iterable[FileCount]) -> list[Part]:
    """Part files by what is known of them: a file with a problem is not good, whatever it starts with."""
    return [part for count in counts for part in _parts(count)]


def _parts(count: FileCount) -> Iterator[Part]:
    usual = _usual(count)
    wrong = "bad" if usual == "bad" else "wrong"
    told = {usual: (count.files, count.bytes)}
    for known, files, size_of in (
        (wrong, count.wrong_files, count.wrong_bytes),
        ("open", count.unchecked_files, count.unchecked_bytes),
    ):
        if files and known != usual:
            all_files, all_bytes = told[usual]
            told[usual] = (all_files - files, all_bytes - size_of)
            told[known] = (files, size_of)
    for known, (files, size_of) in told.items():
        if files:
            yield Part(count, known, files, size_of)


def _usual(count: FileCount) -> str:
    """Return what is known of files without a problem.

    Iceberg encrypts no metadata.json. A stray JSON file that is something else is among the problems.
    """
    if count.encrypted:
        return "good"
    if count.kind == METADATA or count.magic in ("EMPTY", "JSON"):
        return "plain"
    return "bad" if count.magic else "open"


def kind(report: TableReport) -> str:
    """Return the outcome: good, bad or open (something could not be checked)."""
    return {OK: "good", UNCHECKED: "open"}.get(report.exit_code, "bad")


def mark(known: str) -> str:
    """Return the sign for that."""
    return {"good": "✓", "bad": "✗", "open": "?"}[known]


def word(known: str) -> str:
    """Return one word for that."""
    return {"good": "encrypted", "bad": "problems found", "open": "not fully checked"}[known]


def left_out(encrypted: bool | None) -> str:
    """Say what is known of a table that was not verified."""
    known = {True: ", though it has a master key", False: "", None: ", could not be loaded"}
    return f"left out, not verified{known[encrypted]}"


def verdict(report: TableReport) -> str:
    """Say in one line what was found."""
    files = plural(file_count(report), "file")
    of = (
        f"{report.table}"
        if report.key_id is None
        else f"{report.table} (master key {report.key_id!r})"
    )
    if report.ok and report.sample < 1:
        return f"no problem in a sample of {files} of {of}"
    if report.ok and report.folder is not None:
        return f"all {files} in {report.folder} have encrypted formats"
    if report.ok:
        left = " PLAINTEXT from before encrypt_table is still there." if plaintext(report) else ""
        those = f": those of {reach(report)}" + ("." + left if left else "")
        return f"all {files} of {report.table} are encrypted" + _key(report) + those
    if kind(report) == "open":
        unchecked = plural(report.unchecked_count, "file")
        return f"not proved: {unchecked} of {of} could not be checked; no problem in the others"
    if report.key_id is None and not report.problem_count and report.folder is None:
        return f"{report.table} is not encrypted ({files} checked)"
    problems = plural(report.problem_count, "problem")
    open_too = f", {report.unchecked_count:,} not checked" if report.unchecked_count else ""
    return f"{problems} found in {files} of {of}{open_too}"


def _key(report: TableReport) -> str:
    return "" if report.key_id is None else f" (master key {report.key_id!r})"


def file_count(report: TableReport) -> int:
    """How many files there are that should be encrypted: the number that every report shows."""
    return report.file_count - never_encrypted(report)


def byte_count(report: TableReport) -> int:
    """Their length together."""
    return report.byte_count - sum(part.bytes for part in _never(report))


def never_encrypted(report: TableReport) -> int:
    """How many other files there are, which Iceberg never encrypts."""
    return sum(part.files for part in _never(report))


def _never(report: TableReport) -> list[Part]:
    """Of files that may be plaintext, those with a problem should be encrypted: the log of a Delta table, say."""
    return [part for part in parts(report.counts) if part.state == "plain"]


def reach(report: TableReport) -> str:
    """Say which files of a table were looked at."""
    if report.all_snapshots:
        return "all snapshots"
    of = [
        "the current snapshot",
        *([plural(len(report.branches), "branch")] if report.branches else []),
        *([plural(len(report.tags), "tag")] if report.tags else []),
    ]
    return " and ".join([", ".join(of[:-1]), of[-1]] if of[1:] else of)


def plaintext(report: TableReport) -> str:
    """Say where plaintext of a table that was encrypted in place still is; else nothing."""
    if report.plaintext_metadata is None:
        return ""
    return (
        "PLAINTEXT of this table from before encrypt_table is still in the storage: all files that "
        f"{report.plaintext_metadata} reaches. purge_plaintext lists them (dry_run), and deletes them: when nobody "
        "needs the table as it was then."
    )


def scope(report: TableReport) -> str:
    """Say in one line what was looked at, and how."""
    parts = [
        reach(report) if report.folder is None else "a folder, without a catalog",
        f"depth {report.depth}",
        *(["strays"] if report.strays else []),
        *([f"{report.resumed_files:,} files checked before"] if report.resumed_files else []),
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


def limits(report: TableReport) -> list[str]:
    """Say what the report proves, and what it does not."""
    said = [_DEPTHS.get(report.depth, f"Depth {report.depth}.")]
    if report.depth != "magic" and not any(count.encrypted for count in report.counts):
        said = ["No file is encrypted, so there was no key and no tag to check."]
    if report.folder is not None and report.depth == "deep":
        said = [
            "All files in the folder were examined, without a catalog. Every page of Parquet files with column keys "
            "was read, and every authentication tag checked. It is not known whether the files belong to a table, or "
            "are all of its files."
        ]
        return [*said, _NAMES]
    if report.folder is not None:
        said.append(
            "All files in the folder were examined, without a catalog or a key. It is not known whether they belong "
            "to a table, are all of its files, or can be decrypted."
        )
        return [*said, _NAMES]
    if report.sample < 1:
        said.append(
            f"Only a random share of {report.sample:g} of the data and delete files was checked (seed {report.seed}): "
            f"{plural(report.left_out_files, 'file')} ({size(report.left_out_bytes)}) were left out, and nothing is "
            "known about them."
        )
    if report.resumed_files:
        said.append(
            f"{plural(report.resumed_files, 'file')} that an earlier run recorded in {report.resume} as correct were "
            "not read again. Anyone who can write there can make files pass."
        )
    if not report.all_snapshots:
        said.append(
            f"Files of {reach(report)} were checked. Files of other snapshots, which time travel can read, were not."
        )
    if said_plaintext := plaintext(report):
        said.append(said_plaintext)
    if not report.strays:
        said.append(
            "Files in the table's folder that its metadata does not name, such as those of failed writes, were not "
            "looked for."
        )
    if report.metadata_authenticated:
        said.append(
            f"The metadata that names the files is authenticated: {report.metadata_authentication}."
        )
    else:
        said.append(
            f"The metadata that names the files is not authenticated: {report.metadata_authentication}. Anyone who can "
            "write to the storage may have changed which files it names."
        )
    said.append(_NAMES)
    said.append("This holds for the time and the metadata file named above, and for nothing later.")
    return said
