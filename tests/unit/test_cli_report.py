"""`verify` and `report` on the command line: files, signatures, several tables, exit codes. Spark is a double."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import SparkDouble, evidence_json, verify_json
from jsonschema import Draft202012Validator

from pyspark_iceberg_crypto import (
    BadWrappedKeyError,
    ConfigurationError,
    EncryptionKey,
    KeyNotFoundError,
    KmsUnavailableError,
    TableNotFoundError,
    TamperedError,
    VerifyReport,
    VerifyTablesReport,
    cli,
    report_schema,
)
from pyspark_iceberg_crypto.cli import _report, _session, _shared, _verify

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
    """Run the command; `answers` are verify_table's by table, `checked` is check_report's.

    The result has what was verified (`asked`), listed (`selected`) and looked for (`namespaces`), and of which catalogs
    the session is (`catalogs`).
    """
    spark: SparkDouble
    catalogs: list[str]

    @contextmanager
    def session(named: Any, also: Any = (), *_: Any, **__: Any) -> Iterator[SparkDouble]:
        catalogs.extend([named] if isinstance(named, str) else named)
        catalogs.extend(also)
        yield spark

    def invoke(
        *arguments: str,
        answers: Any = None,
        checked: Any = None,
        rows: Any = (),
        signed: Exception | None = None,
    ) -> Result:
        nonlocal spark, catalogs
        catalogs = []
        spark = SparkDouble(
            "lake.db", "lake.a.b", lake="EncryptedSparkCatalog", db="of --catalog-conf"
        )

        def verify(_: Any, table: str, whole: bool = False, **options: Any) -> Any:
            asked.append(
                (
                    table,
                    {
                        k: v
                        for k, v in options.items()
                        if v is True or v not in (None, 0, 1, 0.01, False, ())
                    },
                )
            )
            found = (answers or {}).get(
                table, TableNotFoundError(f"There is no Iceberg table {table}")
            )
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, list):
                if not whole:
                    raise TableNotFoundError(f"There is no Iceberg table {table}")
                left = [
                    {"table": one, "encrypted": False} for one in options.get("except_tables") or ()
                ]
                reports = [VerifyReport.of(one) for one in found]
                return VerifyTablesReport(table, reports, [], ["lake.v"], left)
            return VerifyReport.of({**found, "table": table})

        asked: list[Any] = []
        selected: list[str] = []

        def select(_: Any, operation: str, name: str, except_tables: Any) -> None:
            assert (asked, operation) == ([], "select_tables"), "before anything is verified"
            selected.append(name)
            if any("typo" in one for one in except_tables):
                raise ConfigurationError(f"{name} has no {except_tables}")

        def keys(*_: Any) -> Any:
            if isinstance(rows, Exception):
                raise rows
            return SimpleNamespace(keys=rows)

        def sign(*_: Any) -> str:
            if signed is not None:
                raise signed
            return json.dumps(SIGNATURE)

        def check(*_: Any) -> Any:
            if isinstance(checked, Exception):
                raise checked
            return checked

        monkeypatch.setattr(_session, "session", session)
        monkeypatch.setattr(_verify, "verify_table", verify)
        monkeypatch.setattr(_verify, "verify_catalog", partial(verify, whole=True))
        monkeypatch.setattr(_verify, "verify_folder", verify)
        monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.run", select)
        monkeypatch.setattr(_report, "check_report", check)
        monkeypatch.setattr(_verify, "encryption_keys", keys)
        monkeypatch.setattr("pyspark_iceberg_crypto.jvm._jvm.call", sign)
        result = CliRunner().invoke(cli.main, arguments)
        result.asked = asked  # type: ignore[attr-defined]
        result.selected = selected  # type: ignore[attr-defined]
        result.namespaces = spark.asked  # type: ignore[attr-defined]
        result.catalogs = catalogs  # type: ignore[attr-defined]
        return result

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
    assert "Signature not checked" in page.read_text()


@pytest.mark.parametrize("catalog", ["lake", "reports"])
def test_a_report_may_be_signed_in_another_catalog(
    run: Callable[..., Result], catalog: str
) -> None:
    arguments = ("verify", "lake.db.t", "--sign-with", "k1", "--catalog", catalog)
    result: Any = run(*arguments, answers={"lake.db.t": verify_json()})
    assert result.exit_code == 0, result.stderr
    assert result.catalogs == list(dict.fromkeys(["lake", catalog]))


def test_lines_stay_whole_where_there_is_no_terminal(run: Callable[..., Result]) -> None:
    """So that a path or a statement in a hint can be copied, and found with grep."""
    path, hint = f"s3://b/{'x' * 300}.parquet", "rewrite it: " + "SELECT " * 60
    problem = {**evidence_json()["problems"][0], "path": path, "hint": hint}
    answers = {"lake.db.t": evidence_json(problems=[problem])}
    for more in ((), ("lake.db.t",)):
        result = run("verify", "lake.db.t", *more, answers=answers)
        assert path in result.stdout and hint.rstrip() in result.stdout


def test_a_file_that_cannot_be_written_is_2(run: Callable[..., Result], tmp_path: Path) -> None:
    page = str(tmp_path / "none" / "report.html")
    result = run("verify", "lake.db.t", "--html", page, answers={"lake.db.t": verify_json()})
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr and "Traceback" not in result.output


@pytest.mark.parametrize(("answer", "code"), [(verify_json(), 2), (evidence_json(), 1)])
def test_what_fails_after_a_verification_costs_no_result(
    run: Callable[..., Result], tmp_path: Path, answer: dict[str, Any], code: int
) -> None:
    """As when the KMS refuses to sign after a night, and the page's folder is not there."""
    document, page = tmp_path / "report.json", tmp_path / "none" / "report.html"
    files = ("--json-file", str(document), "--html", str(page), "--output", "json")
    refused = KeyNotFoundError("no key", "check its id")
    answers = {"lake.db.t": answer}
    result = run(
        "verify", "lake.db.t", "--sign-with", "typo", *files, answers=answers, signed=refused
    )
    assert result.exit_code == code
    assert json.loads(result.stdout) == json.loads(document.read_text())
    assert json.loads(result.stdout)["signature"] is None
    assert "error: no key" in result.stderr and "cannot be written" in result.stderr


def test_an_unsigned_report_does_not_replace_the_one_it_is_based_on(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    """No other report could be based on it, and all files would be read again."""
    document, other = tmp_path / "r.json", tmp_path / "other.json"
    since = ("--since", str(document), "--since-key-id", "k1")
    sign = ("--sign-with", "k1")
    (tmp_path / "x").mkdir()
    same = tmp_path / "x" / ".." / "r.json"
    refused = KeyNotFoundError("no key", "check its id")
    for file, more in ((same, sign), (same, ()), (other, sign)):
        document.write_text("signed")
        arguments = ("verify", "lake.db.t", *since, *more, "--json-file", str(file))
        result = run(*arguments, answers={"lake.db.t": verify_json()}, signed=refused)
        assert result.exit_code == 2
        assert document.read_text() == "signed"
        assert ("is still the report of --since" in result.stderr) == (file != other)
        beside = tmp_path / "r.json.not-ok"
        assert beside.exists() == (file != other)
        beside.unlink(missing_ok=True)
    assert json.loads(other.read_text())["signature"] is None


def test_a_report_that_is_not_ok_does_not_replace_the_one_it_is_based_on(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    """The one before it vouches for the files still. One on several tables vouches for those that are ok."""
    document, other, beside = (
        tmp_path / name for name in ("r.json", "other.json", "r.json.not-ok")
    )
    since = ("--since", str(document), "--since-key-id", "k1", "--sign-with", "k1")
    bad = verify_json(ok=False, unchecked_count=1)
    answers = {"lake.db.t": bad, "lake.db.u": verify_json(), "lake.db.v": bad}
    for targets, file, stays in (
        (("lake.db.t",), document, True),
        (("lake.db.t",), other, False),
        (("lake.db.t", "lake.db.u"), document, False),
        (("lake.db.t", "lake.db.v"), document, True),
    ):
        document.write_text("signed")
        result = run("verify", *targets, *since, "--json-file", str(file), answers=answers)
        assert result.exit_code == 2
        assert (document.read_text() == "signed") == (stays or file == other)
        assert ("is still the report of --since: the new one is not ok" in result.stderr) == stays
        assert beside.exists() == stays
        if stays:
            assert json.loads(beside.read_text())["signature"]["key_id"] == "k1"
            beside.unlink()
    assert not json.loads(other.read_text())["ok"]


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "r.json", tmp_path / "link.json"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    with pytest.raises(UnicodeEncodeError):
        _shared.write(file, "half of it, and then \ud800")
    assert file.read_text() == "before"
    _shared.write(link, "after")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("after", 0o640)
    assert link.is_symlink() and set(tmp_path.iterdir()) == {file, link}
    _shared.write(Path(os.devnull), "x")


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EACCES, errno.ENOSPC])
def test_a_file_that_cannot_be_replaced_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As one that a container has mounted; a full disk is another matter."""

    def refuse(self: Path, to: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", refuse)
    file = tmp_path / "r.json"
    file.write_text("before")
    if code == errno.ENOSPC:
        with pytest.raises(ConfigurationError, match=os.strerror(code)):
            _shared.write(file, "after")
    else:
        _shared.write(file, "after")
    assert file.read_text() == ("before" if code == errno.ENOSPC else "after")
    assert list(tmp_path.iterdir()) == [file]


def test_an_unchecked_file_is_2(run: Callable[..., Result]) -> None:
    found = verify_json(unchecked_count=1)
    result = run("verify", "lake.db.t", answers={"lake.db.t": found})
    assert result.exit_code == 2
    assert "? Not proved" in result.stdout


def test_the_tables_keys_are_in_the_report(run: Callable[..., Result], tmp_path: Path) -> None:
    document, page = tmp_path / "report.json", tmp_path / "report.html"
    more = {"encrypted_by": None, "created_at": "2026-01-02T00:00:00Z", "snapshots": 2}
    same = {"kms_answers": True, "authenticated_wrapping": True, "problem": None, "used_for": None}
    rows = [
        EncryptionKey(f"key-{kind}", kind, age_days=9, overdue=False, key_length=16, **more, **same)  # type: ignore[arg-type]
        for kind in ("master", "kek", "manifest list", "dead")
    ]
    arguments = ("verify", "lake.db.t", "--json-file", str(document), "--html", str(page))
    result = run(*arguments, answers={"lake.db.t": verify_json()}, rows=rows)
    assert result.exit_code == 0
    found = json.loads(document.read_text())
    Draft202012Validator(report_schema()).validate(found)
    assert set(found["encryption_keys"][0]) == set(
        report_schema()["$defs"]["encryptionKey"]["properties"]
    )
    assert [key["kind"] for key in found["encryption_keys"]] == ["master", "kek"]
    assert "key-kek: 9 days" in page.read_text() and "key-dead" not in page.read_text()


@pytest.mark.parametrize(
    "failure", [KeyNotFoundError("no key", ""), RuntimeError("503 of the catalog")]
)
def test_keys_that_cannot_be_listed_cost_no_report(
    run: Callable[..., Result], tmp_path: Path, failure: Exception
) -> None:
    document = tmp_path / "report.json"
    for target, answer, others in (
        ("lake.db.t", verify_json(), ""),
        ("lake.db", [verify_json()] * 3, ", nor those of 2 other tables"),
    ):
        arguments = ("verify", target, "--json-file", str(document))
        result = run(*arguments, answers={target: answer}, rows=failure)
        assert result.exit_code == 0, result.stderr
        found = json.loads(document.read_text())
        report = found.get("reports", [found])[0]
        assert report["ok"] and report["encryption_keys"] == []
        said = " ".join(result.stderr.split())
        assert (
            said
            == f"note: the report does not list the keys of {report['table']}{others}: {failure.args[0]}"
        )


def test_several_tables(run: Callable[..., Result]) -> None:
    answers = {
        "lake.db.good": verify_json(),
        "lake.db.bad": evidence_json(),
        "lake.db.gone": KeyNotFoundError("no key \x1b[2J", "Call repair_table."),
    }
    result = run("verify", "lake.db.good", "lake.db.gone", "--output", "json", answers=answers)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    Draft202012Validator(report_schema()).validate(found)
    assert [one["table"] for one in found["reports"]] == ["lake.db.good"]
    assert found["not_checked"][0]["hint"] == "Call repair_table.", "it may be signed"
    assert not found["ok"]
    result = run("verify", *answers, answers=answers)
    assert result.exit_code == 1
    assert "1 has problems, 1 could not be checked" in result.stdout and "\x1b" not in result.stdout
    assert "Run `iceberg-crypto repair`." in result.stdout


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("lake", "lake"),
        ("lake.*", "lake.*"),
        ("lake.db", "lake.db"),
        ("lake.db.*", "lake.db.*"),
        ("lake.a.b", "lake.a.b"),  # no table, but a namespace
    ],
)
def test_a_catalog_or_a_namespace(run: Callable[..., Result], target: str, asked: str) -> None:
    result = run("verify", target, answers={asked: [verify_json(), verify_json()]})
    assert result.exit_code == 0, result.output
    assert f"of 2 tables of {target} are encrypted" in result.stdout
    scope = "8 files in 2 tables, depth magic, current snapshots, branches and tags; 1 view, which"
    assert scope in result.stdout


PLAIN = ("--except", "lake.db.plain")


def test_tables_are_left_out(run: Callable[..., Result]) -> None:
    answers = {"lake": [verify_json()], "lake.db": [verify_json()], "lake.db.t": verify_json()}
    answers["lake.a.b"] = [verify_json()]
    result = run("verify", "lake.db", *PLAIN, "--output", "json", answers=answers)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    Draft202012Validator(report_schema()).validate(found)
    assert found["left_out"] == [{"table": "lake.db.plain", "encrypted": False}]
    asked = [("lake.db", {"except_tables": ("lake.db.plain",)})]
    assert result.asked == asked  # type: ignore[attr-defined]
    given = ("lake.a.b", "lake.db.t", "lake", "lake.db", *PLAIN, "--except", "lake.a.b.`p.q`")
    result = run("verify", *given, answers=answers)
    assert result.exit_code == 0, result.output
    assert "2 tables were left out and not verified" in result.stdout
    assert result.asked == [  # type: ignore[attr-defined]
        ("lake.a.b", {"except_tables": ["lake.a.b.`p.q`"]}),
        ("lake.db.t", {}),
        ("lake", {"except_tables": ["lake.db.plain", "lake.a.b.`p.q`"]}),
        ("lake.db", {"except_tables": ["lake.db.plain"]}),
    ]
    once = (result.selected, result.namespaces)  # type: ignore[attr-defined]
    assert once == (["lake.a.b", "lake", "lake.db"], ["lake.a.b", "lake.db"])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("lake.db", "lake.db.t", "--except", "lake.hr.t"), 64, "--except lake.hr.t: no TARGET"),
        (("lake.db", "lake.db.t", "--except", "lake.db.t"), 64, "a namespace, and lake.db.t is"),
        (("lake.db.t", *PLAIN), 64, "a namespace, and lake.db.t is neither"),
        (("db.t", *PLAIN), 64, "a namespace, and db.t is neither"),
        (("lake.a.b", "lake.db", "--except", "lake.db.typo"), 2, "lake.db has no"),
        (("--folder", "/f", *PLAIN), 64, "--except is not for a folder"),
    ],
)
def test_a_wrong_table_to_leave_out_stops_all(
    run: Callable[..., Result], arguments: tuple[str, ...], code: int, says: str
) -> None:
    answers = {"lake.db": [verify_json()], "lake.db.t": verify_json(), "lake.a.b": [verify_json()]}
    result = run("verify", *arguments, answers=answers)
    assert (result.exit_code, result.asked) == (code, [])  # type: ignore[attr-defined]
    assert says in " ".join(result.stderr.split())


def test_a_name_of_two_parts_is_a_table_of_sparks_catalog(run: Callable[..., Result]) -> None:
    result = run("verify", "db.t", answers={"spark_catalog.db.t": verify_json()})
    assert result.exit_code == 0, "db is a catalog's name only by --catalog-conf"
    result = run("verify", "other.t", answers={"other.t": verify_json()})
    assert result.exit_code == 0


def test_a_name_that_is_a_table_of_sparks_catalog_too() -> None:
    spark = SparkDouble("lake.db", "spark_catalog.lake.db", lake="ours", spark_catalog="ours")
    with pytest.raises(ConfigurationError, match="is both a namespace of catalog lake and a table"):
        _verify._one(spark, "lake.db", False, {})  # type: ignore[arg-type]


def test_a_namespace_that_is_not_there(run: Callable[..., Result]) -> None:
    result = run("verify", "lake.nope")
    assert result.exit_code == 2
    assert result.namespaces == ["lake.nope"]  # type: ignore[attr-defined]
    assert "lake.nope is neither a namespace of catalog lake nor a table" in result.stderr


def test_options_reach_each_table(run: Callable[..., Result]) -> None:
    options = ("--deep", "--sample", "0.5", "--seed", "7", "--strays", "--all-snapshots")
    answers = {"lake.db.a": verify_json(), "lake.db.b": verify_json()}
    options += ("--resume", "s3://b/r/", "--since", "old.json", "--since-key-id", "audit")
    options += ("--recheck", "0.5")
    result = run("verify", *answers, *options, answers=answers)
    more = {"deep": True, "sample": 0.5, "seed": 7, "strays": True, "all_snapshots": True}
    more |= {"since": Path("old.json"), "since_key_id": "audit", "recheck": 0.5}
    folders = [f"s3://b/r/{table}" for table in answers]
    assert [one[0] for one in result.asked] == list(answers)  # type: ignore[attr-defined]
    for (_, given), folder in zip(result.asked, folders, strict=True):  # type: ignore[attr-defined]
        assert {**more, "resume": folder} == {**more, **given}


@pytest.mark.parametrize(
    "wrong",
    [
        ("--sample", "0"),
        ("--sample", "1.1"),
        ("--seed", "x"),
    ],
    ids=str,
)
def test_wrong_options_are_64(run: Callable[..., Result], wrong: tuple[str, ...]) -> None:
    result = run("verify", "lake.db.t", *wrong, answers={"lake.db.t": verify_json()})
    assert result.exit_code == 64
    assert "Error" in result.stderr and "Traceback" not in result.output


def test_folders(run: Callable[..., Result]) -> None:
    result = run("verify", "--folder", "s3://b/w", answers={"s3://b/w": verify_json()})
    assert result.exit_code == 0
    result = run("verify", "--folder", "s3://b/w", "--deep", answers={"s3://b/w": verify_json()})
    assert (result.exit_code, result.asked[-1][1]["deep"]) == (0, True)  # type: ignore[attr-defined]
    for option in (
        ("--all-snapshots",),
        ("--sample", "0.5"),
        ("--strays",),
        ("--structure",),
    ):
        result = run("verify", "--folder", "s3://b/w", *option, answers={"s3://b/w": verify_json()})
        assert result.exit_code == 64, "nothing is left out in silence"
        assert "is not for a folder" in result.stderr


def test_stopped_by_the_user_is_2(run: Callable[..., Result]) -> None:
    result = run("verify", "lake.db.t", answers={"lake.db.t": KeyboardInterrupt()})
    assert result.exit_code == 2
    assert "error: stopped" in result.stderr


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
    assert "✗ Of the 7 files" in result.stdout
    assert "✗ Of the 7 files" in page.read_text()


def test_a_report_that_is_not_genuine_makes_no_page(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    error = TamperedError("The report is not genuine", "")
    assert run("report", "check", "r.json", "--html", str(page), checked=error).exit_code == 1
    assert not page.exists()


def test_the_schema_is_printed(run: Callable[..., Result]) -> None:
    assert json.loads(run("report", "schema").stdout) == report_schema()
