"""`verify` and `report` on the command line: files, signatures, several tables, exit codes. Spark is a double."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import evidence_json, verify_json
from jsonschema import Draft202012Validator

from pyspark_iceberg_crypto import (
    BadWrappedKeyError,
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
    TamperedError,
    VerifyReport,
    cli,
    report_schema,
)
from pyspark_iceberg_crypto.cli import _report, _shared, _verify

SIGNATURE = {
    "algorithm": "HMAC-SHA-256",
    "key_id": "k1",
    "wrapped_key": "AAAA",
    "signed_at": "2026-02-01T00:00:02Z",
    "mac": "0b" * 32,
}
SIGNED = VerifyReport.of(evidence_json(signature=SIGNATURE))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command; `answers` are verify_table's by table, `checked` is check_report's."""

    @contextmanager
    def session(*_: Any) -> Iterator[str]:
        yield "spark"

    def invoke(*arguments: str, answers: Any = None, checked: Any = None) -> Result:
        def verify(_: Any, table: str, **__: Any) -> Any:
            found = (answers or {})[table]
            if isinstance(found, Exception):
                raise found
            return VerifyReport.of({**found, "table": table})

        def check(*_: Any) -> Any:
            if isinstance(checked, Exception):
                raise checked
            return checked

        monkeypatch.setattr(_shared, "session", session)
        monkeypatch.setattr(_verify, "verify_table", verify)
        monkeypatch.setattr(_report, "check_report", check)
        monkeypatch.setattr("pyspark_iceberg_crypto._jvm.call", lambda *_: json.dumps(SIGNATURE))
        return CliRunner().invoke(cli.main, arguments)

    return invoke


def test_json_is_the_schemas_document(run: Callable[..., Result]) -> None:
    result = run("verify", "lake.db.t", "--output", "json", answers={"lake.db.t": evidence_json()})
    Draft202012Validator(report_schema()).validate(json.loads(result.stdout))
    assert result.exit_code == 1


def test_files_are_written(run: Callable[..., Result], tmp_path: Path) -> None:
    page, document = tmp_path / "report.html", tmp_path / "report.json"
    result = run(
        *("verify", "lake.db.t", "--html", str(page), "--json-file", str(document)),
        *("--sign-with", "k1"),
        answers={"lake.db.t": verify_json()},
    )
    assert result.exit_code == 0, result.stderr
    assert "signed with master key 'k1'" in result.stdout
    found = json.loads(document.read_text())
    assert found["signature"] == SIGNATURE and found["ok"]
    assert "was signed with master key" in page.read_text()


def test_a_file_that_cannot_be_written_is_2(run: Callable[..., Result], tmp_path: Path) -> None:
    page = str(tmp_path / "none" / "report.html")
    result = run("verify", "lake.db.t", "--html", page, answers={"lake.db.t": verify_json()})
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr and "Traceback" not in result.output


def test_an_unchecked_file_is_2(run: Callable[..., Result]) -> None:
    found = verify_json(unchecked_count=1)
    result = run("verify", "lake.db.t", answers={"lake.db.t": found})
    assert result.exit_code == 2
    assert "? not proved" in result.stdout


def test_several_tables(run: Callable[..., Result]) -> None:
    answers = {
        "lake.db.good": verify_json(),
        "lake.db.bad": evidence_json(),
        "lake.db.gone": KeyNotFoundError("no key \x1b[2J", "create it"),
    }
    result = run("verify", "lake.db.good", "lake.db.gone", "--output", "json", answers=answers)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    Draft202012Validator(report_schema()).validate(found)
    assert [one["table"] for one in found["reports"]] == ["lake.db.good"]
    assert found["not_checked"][0]["hint"] == "create it" and not found["ok"]
    result = run("verify", *answers, answers=answers)
    assert result.exit_code == 1
    assert "1 with problems, 1 not checked" in result.stdout and "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("checked", "code", "says"),
    [
        (SIGNED, 0, "✓ genuine: signed with master key 'k1' at 2026-02-01T00:00:02Z"),
        (TamperedError("The report is not genuine: x", "h"), 1, "✗ The report is not genuine: x"),
        (BadWrappedKeyError("not this KMS", "h"), 1, "✗ not this KMS"),
        (KmsUnavailableError("no answer", "h"), 2, "error: no answer"),
        (KeyNotFoundError("no key", "h"), 2, "error: no key"),
        (ConfigurationError("It has no signature", "h"), 2, "error: It has no signature"),
        (ZeroDivisionError("a defect of ours"), 2, "error: a defect"),
    ],
    ids=str,
)
def test_report_check(run: Callable[..., Result], checked: Any, code: int, says: str) -> None:
    result = run("report", "check", "report.json", checked=checked)
    assert result.exit_code == code
    assert says in result.output
    as_json = run("report", "check", "report.json", "--output", "json", checked=checked)
    assert as_json.exit_code == code
    if code < 2:
        assert json.loads(as_json.stdout)["genuine"] == (code == 0)


def test_a_genuine_report_of_a_bad_table_says_so(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    result = run("report", "check", "r.json", "--html", str(page), checked=SIGNED)
    assert result.exit_code == 0
    assert "✗ 1 problem found" in result.stdout
    assert "1 problem found" in page.read_text()


def test_a_report_that_is_not_genuine_makes_no_page(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    error = TamperedError("The report is not genuine", "")
    assert run("report", "check", "r.json", "--html", str(page), checked=error).exit_code == 1
    assert not page.exists()


def test_the_schema_is_printed(run: Callable[..., Result]) -> None:
    assert json.loads(run("report", "schema").stdout) == report_schema()
