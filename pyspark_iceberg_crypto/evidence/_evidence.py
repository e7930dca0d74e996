"""What a report on one table and one on several have in common: a page, a notebook's note, a signature."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.errors import VerificationFailedError, VerificationIncompleteError
from pyspark_iceberg_crypto.evidence import _html, _several
from pyspark_iceberg_crypto.reports import _terminal, _words
from pyspark_iceberg_crypto.reports._data import OK, PROBLEM, UNCHECKED, TableReport
from pyspark_iceberg_crypto.reports._layout import Indented, Prose, Records, hinted
from pyspark_iceberg_crypto.reports._text import advice, size, visible
from pyspark_iceberg_crypto.reports._words import CheckedSignature

if TYPE_CHECKING:  # a report is read and shown without Spark, too
    from pyspark.sql import SparkSession

Signed = TypeVar("Signed", bound="Evidence")


class Evidence(_terminal.Shown):
    """A report that prints as text, shows itself in a notebook, makes a page of itself and can be signed."""

    def as_genuine(self: Signed, checked: CheckedSignature) -> Signed:
        """Mark this report as one whose signature was checked, for its page. A copy that is changed is not marked."""
        object.__setattr__(self, "_checked", checked)
        return self

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the report as the JSON schema describes it."""

    @abstractmethod
    def to_html(self) -> str:
        """Return one page for a browser or for print, which loads nothing from elsewhere."""

    def to_json(self) -> str:
        """Return ``to_dict`` as JSON: the text that ``iceberg-crypto verify --output json`` prints."""
        return json.dumps(self.to_dict(), indent=2)

    def sign(self: Signed, spark: SparkSession, catalog: str, key_id: str) -> Signed:
        """Return this report with a signature, which `check_report` checks later.

        It is an HMAC-SHA-256 over the report's JSON, with a random key that the KMS wraps with a master key. It
        proves that a user of that master key signed the report, and that it was not changed. It is not a public-key
        signature: anyone who may use the key could have made it.

        Args:
            spark: a session that has the catalog.
            catalog: the catalog whose KMS signs, such as "lake".
            key_id: the master key. Only its users may be able to wrap with it: not an RSA key.

        Raises:
            AccessDeniedError: the catalog's ``encryption.allowed-key-ids`` does not have the master key.
            ConfigurationError: others can wrap with the master key, so that a signature would prove nothing.
            IcebergCryptoError: the KMS's typed error.
        """
        from pyspark_iceberg_crypto.jvm import _jvm

        text = json.dumps({**self.to_dict(), "signature": None})
        signature = json.loads(_jvm.call(spark, "signReport", catalog, key_id, text))
        return replace(self, signature=signature)  # type: ignore[type-var]


@dataclass(frozen=True)
class TableEvidence(TableReport, Evidence):
    """A `TableReport`, which has the attributes; `Evidence` of what was found."""

    _checked: CheckedSignature | None = field(default=None, init=False, repr=False, compare=False)

    def to_html(self) -> str:
        """Return one page for a browser or for print, which loads nothing from elsewhere."""
        return _html.page(self.table, [self], (self.signature, self._checked))

    def _repr_html_(self) -> str:
        return _html.note(self)


@dataclass(frozen=True)
class VerifyTablesReport(Evidence):
    """What was found on checking several tables.

    Attributes:
        target: what was asked for, such as "lake.db".
        reports: a report on each table.
        not_checked: tables and namespaces of which there is no report: table, problem, hint.
        views: the views, which have no files of their own and were not looked at.
        left_out: the tables that were not verified, as `except_tables` named them: table, and encrypted, whether it has
            a key id; None: it could not be loaded.
        signature: what ``sign`` adds; None: it is not signed.
    """

    target: str
    reports: list[Any]
    not_checked: list[dict[str, str]]
    views: list[str] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    signature: dict[str, str] | None = None
    _checked: CheckedSignature | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(
        cls, found: Mapping[str, Any], kind: type[TableReport] = TableReport
    ) -> VerifyTablesReport:
        """Make one of its own JSON.

        Raises:
            KeyError, TypeError, ValueError: it is not a report.
        """
        reports = [kind.of(one) for one in found["reports"]]
        not_checked = [{str(k): str(v) for k, v in one.items()} for one in found["not_checked"]]
        views = [str(view) for view in found.get("views") or ()]
        left_out = [
            {"table": str(one["table"]), "encrypted": one["encrypted"]}
            for one in found.get("left_out") or ()
        ]
        signature = found.get("signature")
        return cls(str(found["target"]), reports, not_checked, views, left_out, signature)

    @property
    def ok(self) -> bool:
        """Whether every table that was not left out is ok. Without a table nothing is proved."""
        return bool(self.reports) and all(one.ok for one in self.reports) and not self.not_checked

    @property
    def exit_code(self) -> int:
        """0 all is encrypted, 1 there is a problem, 2 something could not be checked."""
        codes = {report.exit_code for report in self.reports}
        if PROBLEM in codes:
            return PROBLEM
        return OK if self.ok else UNCHECKED

    def raise_for_problems(self) -> None:
        """Raise an error unless everything was checked and is encrypted.

        Raises:
            VerificationFailedError: a table has a problem; its ``report`` is this one.
            VerificationIncompleteError: no problem was found, but something could not be checked.
        """
        for code, kind in (
            (PROBLEM, VerificationFailedError),
            (UNCHECKED, VerificationIncompleteError),
        ):
            if self.exit_code == code:
                named = [one.table for one in self.reports if one.exit_code == code]
                named += [one["table"] for one in self.not_checked] if code == UNCHECKED else []
                shown = ", ".join(named[:5]) + (", ..." if len(named) > 5 else "")
                raise kind(f"{_several.verdict(self)}: {shown}", "the report has the details", self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the JSON schema describes it."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        reports = [report.to_dict() for report in self.reports]
        return {"schema_version": 1, "ok": self.ok, **told, "reports": reports}

    def to_html(self) -> str:
        """Return one page for a browser or for print, which loads nothing from elsewhere."""
        return _html.page(self.target, self.reports, (self.signature, self._checked), self)

    def _repr_html_(self) -> str:
        notes = [_html.note(report) for report in self.reports]
        for said, without in (("Not checked", self.not_checked), ("Left out", self.left_out)):
            notes.append(_html.listed(said, [one["table"] for one in without]))
        return "".join(notes)


@_terminal.layout.register
def _tables(found: VerifyTablesReport) -> RenderableType:
    """Lay out one line for each table, details of those with problems, and the verdict on all."""
    rows = []
    for report in found.reports:
        known = _words.kind(report.exit_code)
        rows.append(
            [
                Text(_words.mark(known), _COLOURS[known]),
                Text(visible(report.table)),
                Text(f"{_words.file_count(report):,}"),
                Text(size(_words.byte_count(report))),
                Text(visible(report.key_id)),
                Text(_words.word(report), _COLOURS[known]),
            ]
        )
    without = [(one["table"], "?", "not checked", "yellow") for one in found.not_checked]
    without += [
        (one["table"], "-", _words.left_out(one["encrypted"]), "dim") for one in found.left_out
    ]
    for name, mark, said, style in without:
        rows.append(
            [Text(mark, style), Text(visible(name)), Text(), Text(), Text(), Text(said, style)]
        )
    columns = ("", "table", "files", "bytes", "master key", "found")
    table = Records(columns, rows, title=("table",), right=("files", "bytes"))
    known = _words.kind(found.exit_code)
    verdict = Text(
        f"{_words.mark(known)} {advice(_several.verdict(found))}", f"bold {_COLOURS[known]}"
    )
    signed = [f"signed with master key {found.signature['key_id']!r}"] if found.signature else []
    scope = Prose(Text("\n".join((_several.scope(found), *signed)), "dim"), 0)
    return Group(table, *_details(found), verdict, Indented(scope))


def _details(found: VerifyTablesReport) -> Iterator[RenderableType]:
    for report in found.reports:
        if not report.ok or report.plaintext_metadata:
            yield Text(visible(report.table), "bold underline")
            yield from _terminal.findings(report)
            yield Text()
    for one in found.not_checked:
        line = Text.assemble(("? ", "yellow"), (visible(one["table"]), "bold"), "  not checked\n")
        yield hinted(line.append(advice(one["problem"])), one["hint"])
        yield Text()


_COLOURS = {"good": "green", "bad": "red", "open": "yellow"}
