"""A report as one page that needs nothing else, and as a note in a notebook."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pyspark_iceberg_crypto.evidence import _charts, _several
from pyspark_iceberg_crypto.reports import _scope, _words
from pyspark_iceberg_crypto.reports._data import NOT_OF_FILES, Problem, TableReport
from pyspark_iceberg_crypto.reports._text import size, visible

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.evidence._evidence import VerifyTablesReport

SHOWN_ON_A_PAGE = 200
SHOWN_IN_A_NOTE = 20


@cache
def _environment() -> Environment:
    """Every value is escaped: what a table or its files are called may be a program for the browser."""
    made = Environment(
        loader=PackageLoader("pyspark_iceberg_crypto.evidence", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible"] = visible
    return made


@cache
def _style() -> str:
    return files("pyspark_iceberg_crypto.evidence").joinpath("style.css").read_text("utf-8")


def _view(report: TableReport, most: int) -> SimpleNamespace:
    """Return what the templates show of a report, and no more than so many problems and keys of it."""
    kind = _words.kind(report.exit_code)
    words = _words.states(report)
    wrong, unchecked = report.wrong[:most], report.unchecked[:most]
    keys = sorted(
        report.encryption_keys,
        key=lambda key: (key.get("kind") not in NOT_OF_FILES, str(key.get("kind"))),
    )
    return SimpleNamespace(
        report=report,
        kind=kind,
        mark="!" if kind == "good" and report.plaintext_metadata else _words.mark(kind),
        word=_words.word(report) + (", PLAINTEXT not purged" if report.plaintext_metadata else ""),
        verdict=f"{_words.mark(kind)} {_words.verdict(report)}",
        line=_words.scope(report),
        depth=_scope.depths([report]),
        metadata=_words.metadata(report),
        plaintext=_words.plaintext(report),
        files=f"{_words.file_count(report):,}",
        bytes=size(_words.byte_count(report)),
        scope=_scope.of_table(report),
        not_checked=_scope.not_checked(report),
        totals=[_row(one.state, one.word, one.files, one.bytes) for one in _words.totals(report)],
        counts=[_count(part) for part in _words.parts_of(report) if part.state != "plain"],
        never=[_count(part) for part in _words.never_encrypted(report)],
        evidence=_evidence(report),
        wrong=[_problem(one, words) for one in wrong],
        wrong_left=report.problem_count - len(wrong),
        unchecked=[_problem(one, words) for one in unchecked],
        unchecked_left=report.unchecked_count - len(unchecked),
        bars=_charts.by_kind(report.counts, words),
        ages=_charts.ages(report.encryption_keys),
        history=_charts.history(report.snapshot_history),
        keys=[_key(key) for key in keys[:most]],
    )


def _row(state: str, word: str, files: int, bytes_: int) -> dict[str, str]:
    return {"state": state, "word": word, "files": f"{files:,}", "bytes": size(bytes_)}


def _count(part: _words.Part) -> dict[str, str]:
    row = _row(part.state, part.word, part.files, part.bytes)
    return {**row, "kind": part.count.kind, "magic": part.count.magic or "-"}


def _problem(found: Problem, words: Mapping[str, str]) -> dict[str, str]:
    """A problem with the state of its file: that of the table and the picture of files."""
    state = _words.state_of(found.code)
    word = words[state] + (f": {found.code}" if state == "wrong" and found.code else "")
    return {
        "state": state,
        "word": word,
        "kind": found.kind,
        "path": found.path,
        "problem": found.problem,
        "hint": found.hint,
    }


def _evidence(report: TableReport) -> list[tuple[str, str]]:
    """What identifies the state of the table, and what checked it."""
    rows = [
        ("Folder", report.folder),
        ("Table", report.table if report.folder is None else None),
        ("Table UUID", report.table_uuid),
        ("Location", report.location),
        ("Master key", report.key_id),
        ("KMS", report.kms),
        ("Format version", report.format_version or None),
        ("Metadata file", report.metadata_location),
        ("SHA-256 of it", report.metadata_sha256),
        ("Metadata authentication", _unless_folder(report, report.metadata_authentication)),
        ("Current snapshot", report.current_snapshot_id),
        ("Snapshots checked", _snapshots(report)),
        ("Branches", _listed(report.branches)),
        ("Tags", _listed(report.tags)),
        ("Plaintext from before encrypt_table", report.plaintext_metadata),
        ("Depth", report.depth),
        ("Sample", _unless_folder(report, _sample(report))),
        ("Outcomes recorded in", report.resume),
        ("Index of them", report.record and report.record["index"]),
        ("SHA-256 of the index", report.record and report.record["sha256"]),
        ("MAC of the earlier report", report.since and report.since.get("mac")),
        ("Start", report.started_at),
        ("End", report.ended_at),
        ("Versions", ", ".join(f"{name} {one}" for name, one in report.versions.items())),
    ]
    return [(label, str(value)) for label, value in rows if value not in (None, "")]


def _unless_folder(report: TableReport, told: str) -> str | None:
    return told if report.folder is None else None


def _sample(report: TableReport) -> str:
    return f"{report.sample:g}, seed {report.seed}" if report.sample < 1 else "all files"


def _listed(ids: Sequence[object]) -> str:
    shown = ", ".join(map(str, ids[:20]))
    return shown if len(ids) <= 20 else f"{shown}, and {len(ids) - 20} more in the JSON"


def _snapshots(report: TableReport) -> str:
    more = report.snapshots - len(report.snapshot_ids)
    told = _listed(report.snapshot_ids)
    return f"{told}, and {more} that the report does not list" if told and more > 0 else told


def _key(key: Mapping[str, Any]) -> dict[str, str]:
    told = {
        name: "" if key.get(name) is None else str(key[name])
        for name in ("key_id", "kind", "encrypted_by")
    }
    age, snapshots = key.get("age_days"), key.get("snapshots")
    if key.get("problem") or key.get("kms_answers") is False:
        known, said = "bad", str(key.get("problem") or "the KMS does not answer for it")
    elif key.get("overdue"):
        known, said = "open", "overdue (NIST SP 800-57)"
    elif key.get("authenticated_wrapping") is False:
        known, said = "open", "wrapping under it is not authenticated"
    else:
        known, said = "plain", ""
    return {
        **told,
        "created": str(key.get("created_at") or "")[:10],
        "age": "" if age is None else f"{round(float(age)):,}",
        "snapshots": "" if snapshots is None else f"{int(snapshots):,}",
        "state": known,
        "word": said,
    }


def page(
    title: str,
    reports: Sequence[TableReport],
    signature: tuple[Mapping[str, str] | None, _words.CheckedSignature | None] = (None, None),
    several: VerifyTablesReport | None = None,
) -> str:
    """Make one page of reports, for a browser or for print. It loads nothing and runs no program.

    Args:
        title: what was verified.
        reports: on one table, or on several.
        signature: the signature of the document that holds them, and how that was checked.
        several: the report that holds them; None: there is one report.
    """
    style = _style()
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    versions = reports[0].versions if reports else {}
    made_by = " ".join(("iceberg-crypto", versions.get("iceberg_crypto", ""))).strip()
    state, head, said = _words.signature(*signature)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            reports=[_view(report, SHOWN_ON_A_PAGE) for report in reports],
            all=_all(several) if several else None,
            signature={"kind": state, "head": head, "said": said},
            style=_safe(style),
            style_hash=f"sha256-{digest}",
            made_by=f"Made by {made_by} from the report's JSON",
        )
    )


def _all(found: VerifyTablesReport) -> SimpleNamespace:
    """Return what the page shows of all tables together."""
    reports, kind = found.reports, _words.kind(found.exit_code)
    counts = len(found.not_checked), len(found.left_out), len(found.views)
    return SimpleNamespace(
        kind=kind,
        verdict=f"{_words.mark(kind)} {_several.verdict(found)}",
        missing=found.not_checked,
        left_out=[(one["table"], _words.left_out(one["encrypted"])) for one in found.left_out],
        scope=_scope.of_tables(found.target, reports, *counts),
        not_checked=_scope.not_checked_of_any(reports),
        files=f"{sum(map(_words.file_count, reports)):,}",
        bytes=size(sum(map(_words.byte_count, reports))),
        depth=_scope.depths(reports),
    )


def note(report: TableReport) -> str:
    """Lay out a report for a notebook: the verdict, the picture of kinds, the first problems."""
    name = (
        "ic" + hashlib.sha256(repr(report).encode()).hexdigest()[:12]
    )  # ids are of the whole notebook
    return (
        _environment()
        .get_template("note.html.j2")
        .render(shown=_view(report, SHOWN_IN_A_NOTE), name=name, style=_safe(_style()))
    )


def listed(said: str, tables: Sequence[str]) -> str:
    """Lay out names of tables of which there is no report, for a notebook; nothing if the list is empty."""
    names = ", ".join(map(visible, tables))
    return Markup("<p>{}: {}</p>").format(said, names) if tables else ""


def _safe(style: str) -> Markup:
    """Our own style sheet: the only text that is not escaped."""
    return Markup(style)  # noqa: S704
