"""What was checked, and what was not: sentences that can be handed on without the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._data import TableReport
from pyspark_iceberg_crypto.reports._text import listed, moment, plural, size

Rows = list[tuple[str, str]]

_DEPTHS = {
    "magic": "Only the first bytes of each file were read, and the last ones of Parquet files. They show that its "
    "format is an encrypted one, not that its content is intact.",
    "structure": "The header, the block layout, the footer and the length of each file were checked against its key "
    "metadata. A change within its encrypted content would not be detected.",
    "deep": "Every byte of every encrypted file was read, and every authentication tag was checked with the file's "
    "key.",
}
_NAMES = (
    "Iceberg never encrypts metadata.json. It has the schema, properties, paths of manifest lists and row counts. "
    "Anyone who can list the storage sees the names and lengths of all files."
)
_FOLDER = "Whether these files belong to a table, and whether the table has others, is not known without a catalog."


def depth(report: TableReport) -> str:
    """Say what was checked of each file."""
    if report.folder is not None and report.depth == "deep":
        return (
            "Of Parquet files with keys for columns, every page was read, and checked by its authentication tag. Of "
            "other files the first bytes were read."
        )
    if report.folder is None and report.depth != "magic" and not _has_encrypted(report):
        return "No file is encrypted, so there was no key and no authentication tag to check."
    return _DEPTHS.get(report.depth, f"Depth {report.depth}.")


def _has_encrypted(report: TableReport) -> bool:
    return any(count.encrypted for count in report.counts)


def of_table(report: TableReport) -> Rows:
    """Say what was checked of a table or a folder: a name for each sentence, and the sentence."""
    if report.folder is not None:
        subject = (
            "Folder",
            f"All files in {report.folder}, without a catalog and without table metadata.",
        )
        rows = [subject, ("Files", _files(report)), ("Depth", depth(report))]
    else:
        rows = [
            ("Table", _table(report)),
            ("Snapshots", _snapshots(report)),
            ("Files", _files(report)),
            ("Depth", depth(report)),
            ("Master key", _key(report)),
            ("Metadata", _metadata(report)),
        ]
    return [*rows, *_checked([report])]


def not_checked(report: TableReport) -> list[str]:
    """Say what was not checked of it, and what the report does not show."""
    said = []
    if report.plaintext_metadata and not report.all_snapshots:
        said.append("The plaintext from before encrypt_table, which is still in the storage.")
    if report.unchecked_count:
        said.append(
            f"{plural(report.unchecked_count, 'file')} could not be checked: nothing is known about "
            f"{'it' if report.unchecked_count == 1 else 'them'}. See below."
        )
    if report.sample < 1:
        said.append(
            f"{plural(report.left_out_files, 'data or delete file')} ({size(report.left_out_bytes)}) "
            f"{'was' if report.left_out_files == 1 else 'were'} not in the sample, and nothing is known about them."
        )
    if report.resumed_files:
        said.append(
            f"{plural(report.resumed_files, 'file')} that an earlier run had recorded in {report.resume} as correct "
            "were not read again. Anyone who can write there can make files pass."
        )
    if report.folder is not None:
        return [*said, _FOLDER, _NAMES]
    if others := _words.other_snapshots(report):
        said.append(
            f"Files that only {others} {'reaches' if others.startswith('1 ') else 'reach'}. Time travel can read them."
        )
    if not report.strays:
        said.append(
            "Files in the table's folders that its metadata does not name, such as those of failed writes."
        )
    if not report.metadata_authenticated:
        said.append(
            "The metadata that names the files is not authenticated: anyone who can write to the storage may have "
            "changed which files it names."
        )
    return [*said, _NAMES, "Anything that happened after the check."]


def _table(report: TableReport) -> str:
    known = [
        *([f"UUID {report.table_uuid}"] if report.table_uuid else []),
        *([f"format version {report.format_version}"] if report.format_version else []),
    ]
    said = f"The Iceberg table {report.table}" + (f" ({', '.join(known)})" if known else "")
    return said + (f" in {report.location}." if report.location else ".")


def _snapshots(report: TableReport) -> str:
    if report.all_snapshots:
        number = report.snapshots
        said = "The one snapshot" if number == 1 else f"All {plural(number, 'snapshot')}"
        return f"{said} of the table, and what remains of expired ones in the metadata files that it still lists."
    current = report.current_snapshot_id
    said = "The current snapshot" + (f" ({current})" if current is not None else "")
    for word, names in (("branch", report.branches), ("tag", report.tags)):
        if names:
            said += f", {plural(len(names), word)} ({listed(names)})"
    others = _words.other_snapshots(report)
    were = "was" if others.startswith("1 ") else "were"
    return (
        f"{said}. {others[0].upper()}{others[1:]} {were} not checked."
        if others
        else f"{said}; there is no other."
    )


def _files(report: TableReport) -> str:
    count = plural(_words.file_count(report), "file")
    said = f"{count} ({size(_words.byte_count(report))})"
    if report.folder is not None:
        return f"{said}."
    said += (
        ": manifest lists, manifests, data and delete files, deletion vectors and statistics that these snapshots "
        "reach"
    )
    if report.strays:
        said += ", and files in the table's folders that no metadata names, of which only the first bytes were read"
    if report.sample < 1:
        said += (
            f". Of data and delete files only a random sample of {100 * report.sample:g}% was checked (seed "
            f"{report.seed})"
        )
    return f"{said}."


def _key(report: TableReport) -> str:
    if report.key_id is None:
        return "The table has no master key."
    kms = f" in {report.kms}." if report.kms else "; the report does not name the KMS."
    return f"{report.key_id!r}{kms}"


def _metadata(report: TableReport) -> str:
    verb = "is" if report.metadata_authenticated else "is not"
    return (
        f"The metadata that names the files {verb} authenticated: {report.metadata_authentication}."
    )


def _checked(reports: Sequence[TableReport]) -> Rows:
    """Say when it was checked, and by what."""
    starts = sorted(one.started_at for one in reports if one.started_at)
    ends = sorted(one.ended_at for one in reports if one.ended_at)
    rows = [("Time", f"From {moment(starts[0])} to {moment(ends[-1])}.")] if starts and ends else []
    if software := _distinct(reports, lambda one: _software(one.versions)):
        rows.append(("Software", f"{'; '.join(software)}."))
    return rows


_SOFTWARE = {
    "iceberg_crypto": "iceberg-crypto",
    "iceberg": "Iceberg",
    "spark": "Spark",
    "java": "Java",
}


def _software(versions: Mapping[str, str]) -> str | None:
    said = [f"{_SOFTWARE.get(name, name)} {version}" for name, version in versions.items()]
    return f"{said[0]} with {listed(said[1:])}" if said[1:] else "".join(said) or None


def of_tables(
    target: str,
    reports: Sequence[TableReport],
    missing: int,
    left_out: int,
    views: int,
) -> Rows:
    """Say what was checked of several tables, as `of_table` does.

    Args:
        target: what was asked for.
        reports: on each table.
        missing: how many tables or namespaces could not be checked.
        left_out: how many tables were left out on request.
        views: how many views there are.
    """
    are_folders = bool(reports) and all(one.folder is not None for one in reports)
    thing = "folder" if are_folders else "table"
    said = f"{plural(len(reports), thing)} of {target}" if not are_folders else f"{target}"
    more = [
        *([f"{missing:,} could not be checked"] if missing else []),
        *(
            [f"{left_out:,} {'was' if left_out == 1 else 'were'} left out on request"]
            if left_out
            else []
        ),
        *([f"{plural(views, 'view')} {'has' if views == 1 else 'have'} no files"] if views else []),
    ]
    files = sum(map(_words.file_count, reports))
    keys = listed(_distinct(reports, _master_key))
    rows = [
        ("Folders" if are_folders else "Tables", "; ".join([said, *more]) + "."),
        ("Snapshots", _each(reports, _reach)),
        (
            "Files",
            f"{plural(files, 'file')} ({size(sum(map(_words.byte_count, reports)))}).{_strays(reports)}",
        ),
        ("Depth", _each(reports, depth)),
        ("Master keys", f"{keys}." if keys else ""),
    ]
    return [(name, told) for name, told in rows if told] + _checked(reports)


def not_checked_of_any(reports: Sequence[TableReport]) -> list[str]:
    """Say what was not checked of any table; what is said of some only is in the reports on them."""
    said = [not_checked(report) for report in reports]
    of_all = [line for line in said[0] if all(line in one for one in said)] if said else []
    return [
        "Tables that the catalog did not list.",
        *of_all,
        "See the report on each table for what else was not checked of it.",
    ]


def _strays(reports: Sequence[TableReport]) -> str:
    strays = any(one.strays for one in reports)
    return " Files in the tables' folders that no metadata names are among them." if strays else ""


def _reach(report: TableReport) -> str | None:
    if report.folder is not None:
        return None
    if report.all_snapshots:
        return "All snapshots, and what remains of expired ones in the metadata files that tables still list."
    return (
        "The current snapshot, branches and tags of each table. Other snapshots were not checked."
    )


def _master_key(report: TableReport) -> str | None:
    if report.key_id is None:
        return None
    return f"{report.key_id!r}" + (f" in {report.kms}" if report.kms else "")


def _each(reports: Sequence[TableReport], what: Callable[[TableReport], str | None]) -> str:
    """Say what holds of the tables: one thing, as a rule."""
    return " ".join(_distinct(reports, what))


def _distinct(
    reports: Iterable[TableReport], what: Callable[[TableReport], str | None]
) -> list[str]:
    return [told for told in dict.fromkeys(map(what, reports)) if told]
