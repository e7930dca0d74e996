"""What repair_table makes of the JVM's answer, how it looks, and the command's exit codes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from pyspark_iceberg_crypto import ConfigurationError, repair_table

REMOVED = {
    "kind": "key id removed",
    "problem": "encryption.key-id is gone\x1b[31m",
    "consequence": "nobody reads it",
    "hint": "'k1' is put back.",
    "repairable": True,
    "repaired": False,
}
PLAINTEXT = {**REMOVED, "kind": "plaintext", "repairable": False}
UNCHECKED = {**PLAINTEXT, "kind": "unchecked"}


@pytest.fixture
def run(
    command: Callable[..., tuple[Result, list[Any]]],
) -> Callable[..., tuple[Result, list[Any]]]:
    """Run the command; gives its result, and what the JVM was asked."""

    def invoke(findings: Any, *arguments: str) -> tuple[Result, list[Any]]:
        unchecked = UNCHECKED in findings
        answer = {"table": "lake.db.t", "unchecked": unchecked, "findings": findings}
        return command("repair", "lake.db.t", *arguments, answer=answer)

    return invoke


def test_nothing_is_wrong(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, asked = run([])
    assert asked == ["repair_table", "lake.db.t", False]
    assert result.exit_code == 0
    assert result.stdout.startswith("✓ lake.db.t: nothing is wrong with it")


def test_what_is_left_is_1(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, _ = run([REMOVED, PLAINTEXT])
    assert result.exit_code == 1
    assert result.stdout.startswith(
        r"""✗ lake.db.t: key id removed: encryption.key-id is gone\x1b[31m
hint: 'k1' is put back.
means: nobody reads it
"""
    )
    assert result.stdout.endswith(
        "✗ lake.db.t: 2 findings left, 1 of which can be repaired (confirm)\n"
    )
    result, _ = run([{**REMOVED, "repaired": True}, PLAINTEXT], "--confirm")
    assert result.exit_code == 1
    assert result.stdout.endswith("✗ lake.db.t: 1 finding left\n")


def test_all_is_repaired(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    repaired = {**REMOVED, "repaired": True}
    result, asked = run([repaired], "--confirm")
    assert asked == ["repair_table", "lake.db.t", True]
    assert result.exit_code == 0
    assert "repaired: 'k1' is put back." in result.stdout
    assert result.stdout.endswith("✓ lake.db.t: 1 finding repaired; verify it now\n")
    result, _ = run([repaired], "--confirm", "--output", "json")
    assert json.loads(result.stdout) == {
        "ok": True,
        "table": "lake.db.t",
        "unchecked": False,
        "findings": [{"table": "lake.db.t", **repaired}],
    }


def test_what_could_not_be_looked_at_is_2(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    assert run([REMOVED, UNCHECKED])[0].exit_code == 2
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        repair_table("spark", "")  # type: ignore[arg-type]
