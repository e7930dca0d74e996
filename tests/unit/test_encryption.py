"""What encrypt_table and purge_plaintext make of the JVM's answer, and the command `encrypt`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from doubles.in_process import ANSWERS

from pyspark_iceberg_crypto import ConfigurationError, encrypt_table, purge_plaintext

ENCRYPTED = ANSWERS["encrypt_table"]
PURGED = {
    **ANSWERS["purge_plaintext"],
    **{"table": "lake.db.t\x1b[31m", "committed": False, "paths": ["a", "b"], "left": 1},
    **{"outside": {"/old": 1}, "outside_paths": ["/old/c"], "left_paths": ["/kept/d"]},
    "gaps": ["manifest m: there is no such file"],
}


@pytest.fixture
def run(
    command: Callable[..., tuple[Result, list[Any]]],
) -> Callable[..., tuple[Result, list[Any]]]:
    """Run the command; gives its result, and what the JVM was asked."""

    def invoke(*arguments: str, answer: Any = None) -> tuple[Result, list[Any]]:
        words = () if arguments[0] in ("decrypt", "purge") else ("encrypt",)
        return command(*words, *arguments, answer=answer)

    return invoke


def test_encrypt(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, asked = run("lake.db.t", "--key-id", "k1", "--confirm", answer=ENCRYPTED)
    assert asked == ["encrypt_table", "lake.db.t", "k1", None, None, False]
    assert (result.exit_code, result.stdout.strip()) == (0, "✓ lake.db.t: done")
    result, asked = run("lake.db.t", "--key-id", "k1", "--output", "json", answer=ENCRYPTED)
    assert result.stderr == "Nothing was changed. Add --confirm to do this.\n"
    assert asked[5] is True and json.loads(result.stdout) == {"ok": True, **ENCRYPTED}
    part = {**ENCRYPTED, "committed": False, "seconds": 9, "message": "NOT encrypted yet"}
    result, asked = run(
        *("lake.db.t", "--key-id", "k1", "--max-bytes", "1000", "--confirm"), answer=part
    )
    assert asked[3] == 1000
    assert (result.exit_code, result.stdout.strip()) == (1, "· lake.db.t: NOT encrypted yet")


def test_purge(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    folders = ("--folder", "/old", "--folder", "/older", "--keep", "/kept", "--accept-missing")
    result, asked = run("purge", "lake.db.t", *folders, answer=PURGED)
    assert asked == ["purge_plaintext", "lake.db.t", True, ["/old", "/older"], ["/kept"], True]
    assert result.exit_code == 1 and "--confirm" not in result.stderr, "it would be refused"
    assert result.stdout.splitlines() == [
        rf"· lake.db.t\x1b[31m: {PURGED['message']}",
        "a",
        "b",
        "not in its folders: /old/c",
        "left: /kept/d",
        "cannot be read: manifest m: there is no such file",
    ]
    inside = {**PURGED, "outside": {}, "outside_paths": []}
    result, _ = run("purge", "lake.db.t", "--accept-missing", answer=inside)
    assert "Add --confirm" in result.stderr, "what is missing was accepted"
    result, _ = run("purge", "lake.db.t", answer={**inside, "gaps": []})
    assert result.exit_code == 0 and "Add --confirm" in result.stderr
    done = {**PURGED, "committed": True, "outside": {}, "outside_paths": [], "gaps": []}
    result, _ = run("purge", "lake.db.t", "--confirm", answer=done)
    assert result.exit_code == 1 and result.stdout.splitlines()[1:] == ["left: /kept/d"]
    clean = {**done, "left": 0, "left_paths": []}
    result, _ = run("purge", "lake.db.t", "--confirm", answer=clean)
    assert result.exit_code == 0


def test_decrypt(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, asked = run("decrypt", "lake.db.t", "--confirm", answer=ANSWERS["decrypt_table"])
    assert asked == ["decrypt_table", "lake.db.t", True]
    assert (result.exit_code, result.stdout.strip()) == (0, "✓ lake.db.t: done")
    result, asked = run("decrypt", "lake.db.t", answer={"key_id": "k1"})
    assert asked == ["master_key_use", "lake.db.t"]
    said = "· lake.db.t: is encrypted with 'k1'; it would become plaintext"
    assert (result.exit_code, result.stdout.strip()) == (0, said)


def test_bad_arguments() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        encrypt_table("spark", " ", "k1")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a key id"):
        encrypt_table("spark", "lake.db.t", 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="max_bytes is 0"):
        encrypt_table("spark", "lake.db.t", "k1", max_bytes=0)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="throttle is 'fast'"):
        encrypt_table("spark", "lake.db.t", "k1", throttle="fast")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        purge_plaintext("spark", None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'/old' is not a list of folders"):
        purge_plaintext("spark", "lake.db.t", folders="/old")  # type: ignore[arg-type]
