"""A report on a real table as evidence: as the schema says, signed with the lake's KMS, and checked later."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.lake import Lake
from jsonschema import Draft202012Validator

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    ConfigurationError,
    KeyNotFoundError,
    TableNotFoundError,
    TamperedError,
    VerificationFailedError,
    VerifyReport,
    VerifyTablesReport,
    check_report,
    encryption_keys,
    report_schema,
    verify_table,
)
from pyspark_iceberg_crypto.cli import _verify

SCHEMA = Draft202012Validator(report_schema())


def test_a_signed_report_is_checked_later(hadoop: Lake, tmp_path: Path) -> None:
    table = hadoop.insert(hadoop.create(), [1])
    with verify_table(hadoop.spark, table, all_snapshots=True) as report:
        assert report.exit_code == 0
        report.raise_for_problems()
        signed = report.sign(hadoop.spark, hadoop.catalog, "k1")
    assert report.kms == encryption_keys(hadoop.spark, table).kms
    for found in (report, signed):
        SCHEMA.validate(found.to_dict())
    file = tmp_path / "report.json"
    later = hadoop.with_options({})  # another client, with nothing in its cache
    laid_out = json.dumps(json.loads(signed.to_json()), sort_keys=True, ensure_ascii=False)
    for text in (signed.to_json(), laid_out):
        file.write_text(text)
        assert check_report(later.spark, later.catalog, file, "k1") == signed
    with pytest.raises(TamperedError, match="signed with master key 'k1', not 'k2'"):
        check_report(later.spark, later.catalog, file, "k2")
    for change in CHANGES:
        changed = json.loads(signed.to_json())
        change(changed)
        file.write_text(json.dumps(changed))
        with pytest.raises(TamperedError, match="report is not genuine"):
            check_report(later.spark, later.catalog, file)
    file.write_text(report.to_json())
    with pytest.raises(ConfigurationError, match="It has no signature"):
        check_report(later.spark, later.catalog, file)
    with pytest.raises(KeyNotFoundError):
        report.sign(hadoop.spark, hadoop.catalog, "nobody")
    limited = hadoop.with_options({"encryption.allowed-key-ids": "k2, hr-*"})
    with pytest.raises(AccessDeniedError, match="master key 'k1'.* allows only k2, hr-"):
        report.sign(limited.spark, limited.catalog, "k1")
    file.write_text(signed.to_json())
    with pytest.raises(AccessDeniedError, match="master key 'k1'"):
        check_report(limited.spark, limited.catalog, file)
    assert check_report(limited.spark, limited.catalog, file, "k1") == signed


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda found: found.update(file_count=99),
    lambda found: found.update(table="lake.db.other"),
    lambda found: found["signature"].update(signed_at="2026-01-01T00:00:00Z"),
    lambda found: found["signature"].update(key_id="k2"),
    lambda found: found["counts"].pop(),
]


@pytest.mark.nightly
def test_targets_of_the_command(hadoop: Lake) -> None:
    table = hadoop.insert(hadoop.create(), [1])
    namespace = f"{hadoop.catalog}.{hadoop.namespace}"
    options = {"deep": False, "resume": None}
    found = _verify._one(hadoop.spark, f"`{hadoop.catalog}`.`{hadoop.namespace}`", False, options)
    assert isinstance(found, VerifyTablesReport)
    SCHEMA.validate(found.to_dict())
    (report,) = found.reports
    assert (report.table, report.ok) == (table, True)
    assert [key["kind"] for key in report.encryption_keys] == ["master", "kek"]
    found = _verify._one(hadoop.spark, str(hadoop.folder), True, options)
    assert isinstance(found, VerifyReport) and found.ok, found
    SCHEMA.validate(found.to_dict())
    with pytest.raises(TableNotFoundError, match="There is no Iceberg table"):
        _verify._one(hadoop.spark, f"{namespace}.gone", False, options)
    with pytest.raises(TableNotFoundError, match="is neither a namespace"):
        _verify._one(hadoop.spark, f"{hadoop.catalog}.gone", False, options)


def test_a_report_with_a_problem_is_raised(hadoop: Lake) -> None:
    table = hadoop.create("plain", key=None)
    hadoop.sql(f"INSERT INTO {table} VALUES (1, 'x', 'p')")
    with verify_table(hadoop.spark, table) as report:
        SCHEMA.validate(report.to_dict())
        assert report.exit_code == 1
        assert "plain" in report.to_html()
        with pytest.raises(VerificationFailedError, match="failed verification"):
            report.raise_for_problems()
