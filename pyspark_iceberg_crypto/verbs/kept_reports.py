"""Reports that were kept: read again, and checked against their signature."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_iceberg_crypto.errors import ConfigurationError, TamperedError
from pyspark_iceberg_crypto.evidence._evidence import (
    Evidence,
    TableEvidence,
    VerifyTablesReport,
)
from pyspark_iceberg_crypto.reports._words import CheckedSignature

if TYPE_CHECKING:  # a report is checked without Spark, too
    from pyspark.sql import SparkSession

    from pyspark_iceberg_crypto.verbs.verify import VerifyReport

Kept = TypeVar("Kept", bound=TableEvidence)
SIGNATURE = {"algorithm", "key_id", "wrapped_key", "signed_at", "mac"}
MOST_BYTES = 512 * 1024 * 1024  # a report on 20,000 tables has less


def check_report(
    spark: SparkSession, catalog: str, file: str | Path, key_id: str | None = None
) -> VerifyReport | VerifyTablesReport:
    """Check that a report is as it was signed, and read it.

    A genuine report may still show problems: see its ``ok``.

    Args:
        spark: a session that has the catalog.
        catalog: the catalog whose KMS has the master key, such as "lake".
        file: the report's JSON file.
        key_id: the master key that must have signed it; None: any key that the catalog allows.

    Raises:
        TamperedError: the report is not genuine.
        ConfigurationError: there is no such file, it is not a report, it is not signed, or it contradicts itself.
        IcebergCryptoError: the KMS's typed error: it could not be checked.
    """
    from pyspark_iceberg_crypto.jvm import _connect, _jvm
    from pyspark_iceberg_crypto.verbs.verify import VerifyReport

    def check(text: str) -> None:
        if _connect.is_connect(spark):
            raise _connect.needs_jvm()
        _jvm.run(spark, "check_report", catalog=catalog, key_id=key_id, document=text)

    return check_report_by(check, catalog, file, key_id, VerifyReport)


def check_report_by(
    check: Callable[[str], None],
    catalog: str,
    file: str | Path,
    key_id: str | None,
    kind: type[Kept],
) -> Kept | VerifyTablesReport:
    """Do the same by a function that checks the signature of a document, with the other arguments of `check_report`."""
    text = _read(Path(file))
    found = _parsed(text, file)
    check(text)
    _refuse_other_members(found)
    now = datetime.now(timezone.utc).isoformat()
    report = _report(found, file, kind)
    return report.as_genuine(CheckedSignature(now, catalog, key_id is not None))


def document(report: str | Path | Evidence) -> str:
    """Return the JSON of a report, or of a file that has one.

    Raises:
        ConfigurationError: there is no such file, or it is not a report.
    """
    if isinstance(report, Evidence):
        return report.to_json()
    text = _read(Path(report))
    _parsed(text, report)
    return text


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ConfigurationError(f"{file} is too large for a report", "give a report's JSON")
        return data.decode("utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}", "check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise _no_report(file) from error


def _parsed(text: str, file: str | Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_report(file) from error
    if not isinstance(found, dict) or found.get("schema_version") != 1:
        raise _no_report(file)
    return found


def _refuse_other_members(found: dict[str, Any]) -> None:
    """Refuse a signature that says more than a signature does: whoever signs can put anything into it."""
    signature = found.get("signature")
    if signature is not None and (not isinstance(signature, dict) or set(signature) != SIGNATURE):
        raise TamperedError(
            "The report is not genuine: its signature does not have the members of a signature",
            "Do not rely on it; verify the table again.",
        )


def _report(found: dict[str, Any], file: str | Path, kind: type[Kept]) -> Kept | VerifyTablesReport:
    try:
        return VerifyTablesReport.of(found, kind) if "reports" in found else kind.of(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _no_report(file) from error


def _no_report(file: str | Path) -> ConfigurationError:
    return ConfigurationError(
        f"{file} is not a report of this version",
        "give the JSON that iceberg-crypto verify --json-file or --output json wrote",
    )
