"""What was checked, and what was not: sentences that can be handed on without the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._data import METADATA, TableReport
from pyspark_iceberg_crypto.reports._text import agreeing, listed, moment, plural, size

Rows = list[tuple[str, str]]

# What was checked of each file, before and after what it does not hold of.
_DEPTHS = {
    "magic": (
        "The first bytes of each file were read, and the last ones of Parquet files",
        " They show whether its format is an encrypted one, not whether its content is intact.",
    ),
    "structure": (
        "The header, the block layout, the footer and the length of each encrypted file were checked against its key "
        "metadata",
        " A change within its encrypted content would not be detected.",
    ),
    "deep": (
        "Every byte of every encrypted file was read, and every authentication tag was checked with the file's key",
        "",
    ),
}
_FOLDER_DEPTHS = {
    "magic": (
        "The first bytes of each file were read, and the footers of Parquet and ORC files",
        " They show whether its format is an encrypted one, not whether its content is intact.",
    ),
    "deep": (
        "Of Parquet files with keys for columns, every page was read, and checked by its authentication tag",
        " Of other files the first bytes were read.",
    ),
}
_NONE_ENCRYPTED = (
    "None of the files that were checked is encrypted, so there was no key and no authentication tag to check",
    "",
)
_NAMES = (
    "Iceberg never encrypts metadata.json. It has the schema, properties, paths of manifest lists and row counts. "
    "Anyone who can list the storage sees the names and lengths of all files."
)
_FOLDER = "Whether these files belong to a table, and whether the table has others, is not known without a catalog."


def depths(reports: Iterable[TableReport]) -> str:
    """Say what was checked of each file, and of which that does not hold; once for all tables that are alike."""
    alike: dict[tuple[str, str], list[TableReport]] = {}
    for report in reports:
        alike.setdefault(_depth(report), []).append(report)
    return " ".join(
        (f"{_number(some)}: " if len(alike) > 1 else "") + claim + _but(some, claim) + "." + more
        for (claim, more), some in alike.items()
    )


def _depth(report: TableReport) -> tuple[str, str]:
    other = (f"Depth {report.depth}", "")
    if report.folder is not None:
        return _FOLDER_DEPTHS.get(report.depth, other)
    if report.depth != "magic" and not _has_encrypted(report):
        return _NONE_ENCRYPTED
    return _DEPTHS.get(report.depth, other)


def _but(reports: Sequence[TableReport], claim: str) -> str:
    """Say which files are excepted from a claim about each file. The check of a file ends at its first problem."""
    if claim == _NONE_ENCRYPTED[0]:
        return ""
    found = (
        ("that were not in the sample", any(one.sample < 1 for one in reports)),
        ("that an earlier report vouches for", any(map(_words.rests, reports))),
        ("that an earlier run had recorded as correct", any(map(_resumed, reports))),
        (
            "that no metadata names (only their first bytes were read)",
            any(one.strays for one in reports),
        ),
        ("with a problem", any(one.problem_count for one in reports)),
        ("that could not be checked", any(one.unchecked_count for one in reports)),
    )
    said = listed([f"files {which}" for which, holds in found if holds])
    return f", except for {said}" if said else ""


def _number(reports: Sequence[TableReport]) -> str:
    return plural(len(reports), _words.thing(reports))


def _has_encrypted(report: TableReport) -> bool:
    return any(count.encrypted for count in report.counts)


def of_table(report: TableReport) -> Rows:
    """Say what was checked of a table or a folder: a name for each sentence, and the sentence."""
    if report.folder is not None:
        subject = (
            "Folder",
            f"All files in {report.folder}, without a catalog and without table metadata.",
        )
        rows = [subject, ("Files", _files(report)), ("Depth", depths([report]))]
    else:
        rows = [
            ("Table", _table(report)),
            ("Snapshots", _snapshots(report)),
            ("Files", _files(report)),
            ("Depth", depths([report])),
            ("Master key", _key(report)),
            ("Metadata", _metadata(report)),
        ]
    return [*rows, *_checked([report])]


def not_checked(report: TableReport) -> list[str]:
    """Say what was not checked of it, and what the report does not show."""
    return [*_left_open([report], lambda _: ""), *_never_shown([report])]


def _left_open(
    reports: Sequence[TableReport], of: Callable[[Sequence[TableReport]], str]
) -> Iterator[str]:
    """Say what was not checked of tables, added up.

    Args:
        reports: on the tables.
        of: says of how many tables something is, such as " of 2 tables".
    """
    if some := [one for one in reports if one.plaintext_metadata and not one.all_snapshots]:
        yield f"The plaintext{of(some)} from before encrypt_table, which is still in the storage."
    if some := [one for one in reports if one.unchecked_count]:
        number = sum(one.unchecked_count for one in some)
        yield (
            f"{plural(number, 'file')}{of(some)} could not be checked: nothing is known about "
            f"{agreeing(number, 'it', 'them')}. See below."
        )
    if some := [one for one in reports if _hides_files(one)]:
        yield (
            f"Files{of(some)} that are named only by a metadata file, manifest list or manifest that has a problem or "
            "could not be checked. They may not be counted."
        )
    if some := [one for one in reports if one.sample < 1]:
        number, bytes_ = (sum(getattr(one, f"left_out_{what}") for one in some) for what in _SUMS)
        yield (
            f"{plural(number, 'data or delete file')}{of(some)} ({size(bytes_)}) "
            f"{agreeing(number, 'was', 'were')} not in the sample, and nothing is known about "
            f"{agreeing(number, 'it', 'them')}."
        )
    if some := [one for one in reports if _words.rests(one)]:
        number = sum(map(_words.rests, some))
        again = sum(one.since["rechecked_files"] for one in some if one.since)
        yield (
            f"{plural(number, 'file')}{of(some)} that an earlier report vouches for {agreeing(number, 'was', 'were')} "
            f"not read again. A change of {agreeing(number, 'it', 'them')} since then would not be detected; "
            f"{plural(again, 'other file')} of that report {agreeing(again, 'was', 'were')} checked again."
        )
    if some := [one for one in reports if _unsigned(one)]:
        number = sum(map(_unsigned, some))
        yield (
            f"For {number:,} of these files{of(some)}, the result was recorded in a folder before anyone signed it. "
            "Anyone who could write there can have made them pass."
        )
    if some := [one for one in reports if _resumed(one)]:
        number = sum(map(_resumed, some))
        where = listed([*dict.fromkeys(str(one.resume) for one in some)], 3)
        yield (
            f"{plural(number, 'file')}{of(some)} that an earlier run had recorded in {where} as correct "
            f"{agreeing(number, 'was', 'were')} not read again. Anyone who can write there can make files pass."
        )
    if some := [one for one in reports if _words.other_snapshots(one)]:
        others = _words.other_snapshots(some[0]) if len(reports) == 1 else "other snapshots"
        reach = "reaches" if others.startswith("1 ") else "reach"
        yield f"Files{of(some)} that only {others} {reach}. Time travel can read them."
    tables = [one for one in reports if one.folder is None]
    if some := [one for one in tables if not one.strays]:
        yield f"Files in table folders{of(some)} that no metadata names, such as those of failed writes."
    if some := [one for one in tables if not one.metadata_authenticated]:
        yield (
            f"The metadata{of(some)} that names the files is not authenticated: anyone who can write to the storage "
            "may have changed which files it names."
        )


def _resumed(report: TableReport) -> int:
    """How many files were not read again, because a run that nobody signed recorded them."""
    return report.resumed_files - _words.rests(report)


def _unsigned(report: TableReport) -> int:
    """How many files an earlier report vouches for that did not read them either, but took them over unsigned."""
    return int(report.since["unsigned_files"]) if report.since else 0


_SUMS = ("files", "bytes")
_LISTS = (METADATA, "manifest list", "manifest")  # kinds of files that name others


def _hides_files(report: TableReport) -> bool:
    """Whether files may be missing in a report, as what names them was not read."""
    return report.folder is None and any(
        count.kind in _LISTS and (count.wrong_files or count.unchecked_files)
        for count in report.counts
    )


def _never_shown(reports: Sequence[TableReport]) -> list[str]:
    are_folders = any(one.folder is not None for one in reports)
    return [
        *([_FOLDER] if are_folders else []),
        _NAMES,
        "Anything that happened after the check.",
    ]


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
    if report.since:
        number, again = _words.rests(report), report.since["rechecked_files"]
        said += (
            f". {number:,} of them {agreeing(number, 'rests', 'rest')} on {_words.earlier(report)}, and "
            f"{again:,}, a random share of {100 * report.since['recheck']:g}%, {agreeing(again, 'was', 'were')} "
            "checked again"
        )
        if report.record:
            said += f"; the oldest of the checks was made at {moment(str(report.record['oldest']))}"
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
    are_folders = _words.are_folders(reports)
    said = target if are_folders else f"{_number(reports)} of {target}"
    more = [
        *([f"{missing:,} could not be checked"] if missing else []),
        *(
            [f"{left_out:,} {agreeing(left_out, 'was', 'were')} left out on request"]
            if left_out
            else []
        ),
        *([f"{plural(views, 'view')} {agreeing(views, 'has', 'have')} no files"] if views else []),
    ]
    files = sum(map(_words.file_count, reports))
    keys = listed(_distinct(reports, _master_key))
    rows = [
        ("Folders" if are_folders else "Tables", "; ".join([said, *more]) + "."),
        ("Snapshots", _reach(reports)),
        (
            "Files",
            f"{plural(files, 'file')} ({size(sum(map(_words.byte_count, reports)))}).{_strays(reports)}",
        ),
        ("Depth", depths(reports)),
        ("Master keys", f"{keys}." if keys else ""),
    ]
    return [(name, told) for name, told in rows if told] + _checked(reports)


def not_checked_of_any(reports: Sequence[TableReport]) -> list[str]:
    """Say what was not checked of several tables, added up."""
    thing = _words.thing(reports)
    return [
        "Tables that the catalog did not list." if thing == "table" else "Other folders.",
        *_left_open(reports, lambda some: f" of {_number(some)}"),
        *(_never_shown(reports) if reports else []),
        f"See the report on each {thing} for what was not checked of it.",
    ]


def _strays(reports: Sequence[TableReport]) -> str:
    if not any(one.strays for one in reports):
        return ""
    return " Files in the tables' folders that no metadata names are among them; only their first bytes were read."


def _reach(reports: Sequence[TableReport]) -> str:
    """Say which snapshots of tables were checked; nothing of folders."""
    tables = [one for one in reports if one.folder is None]
    current = [one for one in tables if not one.all_snapshots]
    whole = len(tables) - len(current)
    said = []
    if whole:
        of = f" of {plural(whole, 'table')}" if current else ""
        said.append(
            f"All snapshots{of}, and what remains of expired ones in the metadata files that tables still list."
        )
    if current:
        of = plural(len(current), "table") if whole else "each table"
        said.append(f"The current snapshot, branches and tags of {of}.")
    if any(map(_words.other_snapshots, current)):
        said.append("Other snapshots were not checked.")
    return " ".join(said)


def _master_key(report: TableReport) -> str | None:
    if report.key_id is None:
        return None
    return f"{report.key_id!r}" + (f" in {report.kms}" if report.kms else "")


def _distinct(
    reports: Iterable[TableReport], what: Callable[[TableReport], str | None]
) -> list[str]:
    return [told for told in dict.fromkeys(map(what, reports)) if told]
