"""The command line: what it prints where, and its exit codes. Spark is a double."""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from doubles.in_process import SparkDouble, broken_json, verify_json
from harness.jars import ROOT
from pyspark.errors import AnalysisException

from pyspark_iceberg_crypto import KeyNotFoundError, VerifyReport, cli
from pyspark_iceberg_crypto.cli import _session, _verify
from pyspark_iceberg_crypto.jvm import _jvm


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command; `answer` is what verify_table gives, or raises."""

    @contextmanager
    def session(*_: Any, **__: Any) -> Iterator[SparkDouble]:
        yield SparkDouble()

    def invoke(*arguments: str, answer: Any = None, spark: Any = session) -> Result:
        def give(*_: Any, **__: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(_session, "session", spark)
        monkeypatch.setattr(_verify, "verify_table", give)
        return CliRunner().invoke(cli.main, arguments)

    return invoke


def test_help_names_the_commands_and_exit_codes(run: Callable[..., Result]) -> None:
    shown = run("--help").output
    assert all(
        f"  {name} " in shown
        for name in ("demo", "doctor", "inspect", "keys", "kms", "report", "rotate", "verify")
    )
    told = " ".join(shown.split())
    assert "Exit code" in told
    assert all(re.search(rf"\b{code} \w", told) for code in (0, 1, 2))


def test_version(run: Callable[..., Result]) -> None:
    assert "0.1.0" in run("--version").output


def test_all_encrypted_is_0(run: Callable[..., Result]) -> None:
    result = run("verify", "lake.db.t", answer=VerifyReport.of(verify_json()))
    assert result.exit_code == 0
    assert "All 4 files in the current snapshot of lake.db.t are encrypted" in result.stdout


def test_a_problem_is_1(run: Callable[..., Result]) -> None:
    result = run("verify", "lake.db.t", answer=VerifyReport.of(broken_json()))
    assert result.exit_code == 1
    assert "hint: rewrite it" in result.stdout


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyNotFoundError("no key 'k9'", "create it"), "error: no key 'k9'\nhint: create it\n"),
        (AnalysisException("no such table\nplan: ..."), "error: no such table\nhint: is the"),
        (OSError("disk full"), "error: disk full\n"),
        (ZeroDivisionError("a defect of ours"), "error: a defect of ours\n"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_2(
    run: Callable[..., Result], error: Exception, says: str
) -> None:
    result = run("verify", "lake.db.t", answer=error)
    assert result.exit_code == 2
    assert result.stderr.startswith(says)
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "lake.db.t", "--catalog-conf", "type"),
        ("verify", "lake.db.t", "--conf", "=x"),
        ("verify",),
        ("no-such-command",),
    ],
    ids=str,
)
def test_a_wrong_command_is_64(run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    real = _session.session
    result = run(*arguments, spark=real)
    assert result.exit_code == 64
    assert "error" in result.stderr.lower()
    assert "Traceback" not in result.output
    result = run(*arguments, "--output", "json", spark=real)
    assert result.exit_code == 64
    assert json.loads(result.stdout)["problem"] in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("lake.db.t", "--catalog-conf", "type=hbase", "--catalog-conf", "catalog-impl=x"),
        ("my-lake.db.t", "--catalog-conf", "type=hive"),
    ],
    ids=str,
)
def test_settings_that_are_refused_are_2(
    run: Callable[..., Result], arguments: tuple[str, ...]
) -> None:
    result = run("verify", *arguments, spark=_session.session)
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)


def test_catalog_settings_go_to_the_tables_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    @contextmanager
    def session(names: list[str], also: list[str], needed: list[str]) -> Iterator[SparkDouble]:
        assert also == []
        seen.append((names, needed, click.get_current_context().obj.catalog_conf))
        yield SparkDouble()

    monkeypatch.setattr(_session, "session", session)
    monkeypatch.setattr(_verify, "verify_table", lambda *_, **__: VerifyReport.of(verify_json()))
    tables = {
        "prod.a.b.t": (["prod"], ["prod"]),
        "`prod`.`a.b`.t": (["prod"], ["prod"]),
        "db.t": (["spark_catalog", "db"], []),
        "`my.db`.t": (["spark_catalog"], []),
        "spark_catalog.db.t": (["spark_catalog"], ["spark_catalog"]),
    }
    for table in tables:
        CliRunner().invoke(cli.main, ["verify", table, "--catalog-conf", "uri=a=b"])
    assert seen == [(*catalogs, ("uri=a=b",)) for catalogs in tables.values()]


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "lak.db.t"),
        ("verify", "lake.db.t", "lak"),
        ("verify", "--folder", "/data", "--catalog", "lak"),
        ("keys", "lak.db.*"),
        ("rotate", "lak.db.t"),
        ("rotate", "lake.db.t", "--from-catalog", "lak", "--new-key-id", "k2"),
        ("prune", "lak.db.t"),
        ("encrypt", "lak.db.t", "--key-id", "k1"),
        ("repair", "lak.db.t"),
        ("inspect", "/data/a.parquet", "--table", "lak.db.t"),
        ("report", "check", "pyproject.toml", "--catalog", "lak"),
    ],
    ids=" ".join,
)
def test_a_misspelt_catalog_is_told_before_spark_starts(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("catalogs: {lake: {type: hive}, hr: {type: hive}}")
    monkeypatch.setattr(_session, "_start", lambda *_: pytest.fail("Spark was started"))
    result = CliRunner().invoke(cli.main, [*arguments, "--config", str(profile)])
    assert result.exit_code == 2, result.output
    assert "error: There is no catalog 'lak'; the profile has: lake, hr." in result.stderr
    profile.write_text("spark: {spark.sql.catalog.lak: x}")
    with pytest.raises(pytest.fail.Exception):
        CliRunner().invoke(
            cli.main, ["verify", "lak.db.t", "--config", str(profile)], catch_exceptions=False
        )


class AwayError(Exception):
    """One of Java's: who asks it what it says after the JVM has ended gets another error."""

    java_exception = None

    def __str__(self) -> str:
        if not jvm_is_up:
            raise ConnectionRefusedError("no JVM")
        return "Job aborted due to stage failure: ..."


jvm_is_up = True


def test_an_error_of_spark_is_told_while_there_is_a_jvm(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut_down(_: Any) -> None:
        monkeypatch.setattr(sys.modules[__name__], "jvm_is_up", False)

    monkeypatch.setattr(_session, "_start", lambda *_: SparkDouble())
    monkeypatch.setattr(_jvm, "shut_down", shut_down)
    result = run("verify", "spark_catalog.db.t", answer=AwayError(), spark=_session.session)
    assert (result.exit_code, jvm_is_up) == (2, False)
    assert result.stderr == "error: Job aborted due to stage failure: ...\n"


NO_COMMANDS = {
    "copies",
    "decrypts",
    "encrypts",
    "for",
    "is",
    "on",
    "purges",
    "value",
    "verifies",
    "wrapped",
}


def strings_of_the_sources() -> Iterator[tuple[Path, str]]:
    """Strings with what is added to them: of Python, but for the command line's own help, and of Java."""
    for path in (ROOT / "pyspark_iceberg_crypto").rglob("*.py"):
        if path.parent.name != "cli":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield path, node.value
    for path in (ROOT / "jvm").glob("**/src/main/java/**/*.java"):
        joined = re.sub(r'"\s*\+\s*"', "", path.read_text())
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined):
            yield path, text


def test_hints_name_commands_that_exist_and_change_no_table() -> None:
    found = set()
    context = click.Context(cli.main)
    for path, text in strings_of_the_sources():
        for name in re.findall(r"(?<![\w-])iceberg-crypto ([a-z][\w-]*)", text):
            if name not in NO_COMMANDS:
                command = cli.main.get_command(context, name)
                assert command is not None, f"{path}: there is no command {name}"
                changes = any(one.name == "confirm" for one in command.params)
                assert not changes, f"{path}: {name} changes tables"
                found.add(name)
    assert {"doctor", "inspect", "kms"} <= found
