"""What repair_table makes of the JVM's answer, how it looks, and the command's exit codes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pyspark_iceberg_crypto import (
    ConfigurationError,
    NotEncryptedError,
    _jvm,
    cli,
    repair_table,
)
from pyspark_iceberg_crypto.cli import _session

REMOVED = {
    "finding": "key id removed",
    "detail": "encryption.key-id is gone\x1b[31m",
    "consequence": "nobody reads it",
    "remedy": "'k1' is put back.",
    "mendable": True,
    "mended": False,
}
PLAINTEXT = {**REMOVED, "finding": "plaintext", "mendable": False}
UNCHECKED = {**PLAINTEXT, "finding": "unchecked"}


def run(patch: pytest.MonkeyPatch, findings: Any, *arguments: str) -> tuple[Result, list[Any]]:
    asked: list[Any] = []

    def call(_: Any, *given: Any) -> str:
        asked.append(given)
        if isinstance(findings, Exception):
            raise findings
        complete = UNCHECKED not in findings
        return json.dumps({"table": "lake.db.t", "complete": complete, "findings": findings})

    @contextmanager
    def session(*_: Any) -> Iterator[str]:
        yield "spark"

    patch.setattr(_jvm, "call", call)
    patch.setattr(_session, "session", session)
    return CliRunner().invoke(cli.main, ["repair", "lake.db.t", *arguments]), asked


def test_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    result, asked = run(monkeypatch, [])
    assert asked == [("repairTable", "lake.db.t", False)]
    assert result.exit_code == 0
    assert result.stdout.startswith("✓ lake.db.t: nothing is wrong with it")


def test_what_is_left_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, [REMOVED, PLAINTEXT])
    assert result.exit_code == 1
    assert result.stdout.startswith(
        r"""✗ key id removed: encryption.key-id is gone\x1b[31m
means: nobody reads it
remedy: 'k1' is put back.
"""
    )
    assert result.stdout.endswith("✗ lake.db.t: 2 findings left, 1 of which can be mended (yes)\n")
    result, _ = run(monkeypatch, [{**REMOVED, "mended": True}, PLAINTEXT], "--yes")
    assert result.exit_code == 1
    assert result.stdout.endswith("✗ lake.db.t: 1 finding left\n")


def test_all_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    mended = {**REMOVED, "mended": True}
    result, asked = run(monkeypatch, [mended], "--yes")
    assert asked == [("repairTable", "lake.db.t", True)]
    assert result.exit_code == 0
    assert "mended: 'k1' is put back." in result.stdout
    assert result.stdout.endswith("✓ lake.db.t: 1 finding mended; verify it now\n")
    result, _ = run(monkeypatch, [mended], "--yes", "--output", "json")
    assert json.loads(result.stdout) == {
        "ok": True,
        "table": "lake.db.t",
        "complete": True,
        "findings": [mended],
    }


def test_what_could_not_be_looked_at_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [REMOVED, UNCHECKED])[0].exit_code == 2
    result, _ = run(monkeypatch, NotEncryptedError("no keys", "verify it"))
    assert (result.exit_code, result.stderr) == (2, "error: no keys\nhint: verify it\n")
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        repair_table("spark", "")  # type: ignore[arg-type]
