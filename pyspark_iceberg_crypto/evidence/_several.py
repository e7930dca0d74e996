"""What is said of several tables at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._data import OK, PROBLEM, UNCHECKED, TableReport
from pyspark_iceberg_crypto.reports._text import agreeing, listed, plural

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.evidence._evidence import VerifyTablesReport


def verdict(found: VerifyTablesReport) -> str:
    """Say in one line what was found, and of which tables and files."""
    left = len(found.left_out)
    said = _good(found) if found.ok else _bad(found)
    said += _rests(found) + _words.were_not_checked(_rest(found))
    said += _words.without_keys(found.reports) if _words.are_folders(found.reports) else ""
    if behind := sum(one.plaintext_metadata is not None for one in found.reports):
        said += f"; PLAINTEXT of {plural(behind, 'table')} from before encrypt_table is still in the storage"
    if left:
        said += (
            f"; {plural(left, 'table')} {agreeing(left, 'was', 'were')} left out and not verified"
        )
    return said


def _bad(found: VerifyTablesReport) -> str:
    tables = len(found.reports) + len(found.not_checked)
    if not tables:
        verified = "verified" if found.left_out else "found"
        return f"No table of {found.target} was {verified}, so nothing is proved"
    codes = [report.exit_code for report in found.reports]
    sampled = sum(report.ok and report.sample < 1 for report in found.reports)
    since = sum(
        report.ok and report.sample == 1 and _words.rests(report) > 0 for report in found.reports
    )
    counted = (
        (codes.count(PROBLEM), "has problems", "have problems"),
        (codes.count(UNCHECKED), "could not be checked in full", "could not be checked in full"),
        (len(found.not_checked), "could not be checked", "could not be checked"),
        (sampled, "has no problem in its sample", "have no problem in their samples"),
        (since, "has no problem since its earlier report", "have no problem since then"),
        (codes.count(OK) - sampled - since, *_is_ok(found)),
    )
    thing = _words.thing(found.reports)
    if tables == 1:
        has = next(has for number, has, _ in counted if number)
        return f"The one {thing} of {found.target} {has}"
    told = [f"{number:,} {agreeing(number, one, more)}" for number, one, more in counted if number]
    return f"Of {plural(tables, thing)} of {found.target}, {listed(told)}"


def _good(found: VerifyTablesReport) -> str:
    number = sum(map(_words.file_count, found.reports))
    one = len(found.reports) == 1
    thing = _words.thing(found.reports)
    which = "" if not found.left_out else " that was verified" if one else " that were verified"
    where = f"the one {thing}" if one else plural(len(found.reports), thing)
    where = f"{_snapshots(found)}{where} of {found.target}{which}"
    if not number:
        return f"There is no file yet to encrypt in {where}"
    if any(report.sample < 1 for report in found.reports):
        return f"No problem was found in a sample of {plural(number, 'file')} in {where}"
    if any(map(_words.rests, found.reports)):
        return f"No problem was found in {plural(number, 'file')} in {where}"
    state = "of encrypted formats" if _words.are_folders(found.reports) else "encrypted"
    return f"{_words.all_files(number)} in {where} {agreeing(number, 'is', 'are')} {state}"


def _rests(found: VerifyTablesReport) -> str:
    """Say how many files were not read again, because earlier reports vouch for them."""
    number = sum(map(_words.rests, found.reports))
    if not number:
        return ""
    return f"; {plural(number, 'file')} of an earlier report {agreeing(number, 'was', 'were')} not read again"


def _rest(found: VerifyTablesReport) -> list[str]:
    """Say what was not checked on purpose."""
    files = sum(one.left_out_files for one in found.reports)
    others = any(map(_words.other_snapshots, found.reports))
    return [*([plural(files, "file")] if files else []), *(["other snapshots"] if others else [])]


def _is_ok(found: VerifyTablesReport) -> tuple[str, str]:
    """Say of a table, and of several, that nothing is wrong with what was checked."""
    if _words.are_folders(found.reports):
        return "has encrypted formats only", "have encrypted formats only"
    return "is encrypted", "are encrypted"


def _snapshots(found: VerifyTablesReport) -> str:
    """Say which files of the tables were looked at, if it is the same of all."""
    if _words.are_folders(found.reports) or len({one.all_snapshots for one in found.reports}) > 1:
        return ""
    if found.reports[0].all_snapshots:
        folders = " and folders" if all(one.strays for one in found.reports) else ""
        return f"all snapshots{folders} of "
    named = any(one.branches or one.tags for one in found.reports)
    return "the current snapshots, branches and tags of " if named else "the current snapshots of "


def scope(found: VerifyTablesReport) -> str:
    """Say how much was looked at, how deep, and what of each table."""
    files = sum(_words.file_count(report) for report in found.reports)
    resumed = sum(report.resumed_files for report in found.reports)
    parts = [
        f"{plural(files, 'file')} in {plural(len(found.reports), _words.thing(found.reports))}",
        *_each(found, "depth {}", lambda one: one.depth),
        *_each(found, "{}", _reach),
        *_each(found, "sample {}", lambda one: f"{one.sample:g}" if one.sample < 1 else None),
        *([f"{plural(resumed, 'file')} checked before"] if resumed else []),
        *(["strays"] if any(one.strays for one in found.reports) else []),
    ]
    views = f"; {plural(len(found.views), 'view')}, which have no files" if found.views else ""
    return ", ".join(parts) + views


def _each(
    found: VerifyTablesReport, said: str, what: Callable[[TableReport], str | None]
) -> Iterator[str]:
    """Say what holds of the tables: one thing, as a rule."""
    for told in dict.fromkeys(map(what, found.reports)):
        if told is not None:
            yield said.format(told)


def _reach(report: TableReport) -> str:
    if report.folder is not None:
        return "folders, without a catalog"
    return "all snapshots" if report.all_snapshots else "current snapshots, branches and tags"
