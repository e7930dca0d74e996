"""What encrypt_table and purge_plaintext make of the JVM's answer, and the command `encrypt`."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from pyspark_iceberg_crypto import (
    ConfigurationError,
    KeyNotFoundError,
    encrypt_table,
    purge_plaintext,
)

ENCRYPTED = {
    "table": "lake.db.t",
    "key_id": "k1",
    "refs": 1,
    "files": 2,
    "bytes": 2048,
    "copied_files": 2,
    "files_left": 0,
    "rows": 5,
    "kms_calls": 4,
    "seconds": None,
    "plaintext_metadata": "s3://lake/db/t/metadata/plaintext-1.metadata.json",
    "committed": True,
    "message": "encrypted with 'k1'",
}
PURGED = {
    "table": "lake.db.t\x1b[31m",
    "files": 2,
    "bytes": 10,
    "paths": ["a", "b"],
    "outside": {"/old": 1},
    "outside_paths": ["/old/c"],
    "left": 1,
    "left_paths": ["/kept/d"],
    "gaps": ["manifest m: there is no such file"],
    "committed": False,
    "message": "2 plaintext files would be deleted; nothing was changed",
}


@pytest.fixture
def run(
    command: Callable[..., tuple[Result, list[Any]]],
) -> Callable[..., tuple[Result, list[Any]]]:
    """Run the command; gives its result, and what the JVM was asked."""

    def invoke(*arguments: str, answer: Any = None) -> tuple[Result, list[Any]]:
        words = () if arguments[:1] == ("decrypt",) else ("encrypt",)
        return command(*words, *arguments, answer=answer)

    return invoke


def test_encrypt(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, asked = run("lake.db.t", "--key-id", "k1", answer=ENCRYPTED)
    assert asked == ["encrypt_table", "lake.db.t", "k1", None, False]
    assert (result.exit_code, result.stdout.strip()) == (0, "✓ lake.db.t: encrypted with 'k1'")
    result, asked = run(
        "lake.db.t", "--key-id", "k1", "--dry-run", "--output", "json", answer=ENCRYPTED
    )
    assert asked[4] is True and json.loads(result.stdout) == {"ok": True, **ENCRYPTED}
    part = {**ENCRYPTED, "committed": False, "files_left": 1, "message": "NOT encrypted yet"}
    result, asked = run("lake.db.t", "--key-id", "k1", "--max-bytes", "1000", answer=part)
    assert asked[3] == 1000
    assert (result.exit_code, result.stdout.strip()) == (1, "· lake.db.t: NOT encrypted yet")


def test_purge(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    folders = ("--folder", "/old", "--folder", "/older", "--keep", "/kept", "--accept-missing")
    result, asked = run("lake.db.t", "--purge", "--dry-run", *folders, answer=PURGED)
    assert asked == ["purge_plaintext", "lake.db.t", True, ["/old", "/older"], ["/kept"], True]
    assert result.stdout.splitlines() == [
        rf"· lake.db.t\x1b[31m: {PURGED['message']}",
        "a",
        "b",
        "not in its folders: /old/c",
        "left: /kept/d",
        "cannot be read: manifest m: there is no such file",
    ]
    done = {**PURGED, "committed": True, "outside": {}, "outside_paths": [], "gaps": []}
    result, _ = run("lake.db.t", "--purge", answer=done)
    assert result.exit_code == 1 and result.stdout.splitlines()[1:] == ["left: /kept/d"]
    result, _ = run("lake.db.t", "--purge", answer={**done, "left": 0, "left_paths": []})
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "options", [(), ("--purge", "--key-id", "k1"), ("--key-id", "k1", "--keep", "/a")]
)
def test_it_is_one_or_the_other(
    run: Callable[..., tuple[Result, list[Any]]], options: tuple[str, ...]
) -> None:
    result, asked = run("lake.db.t", *options)
    assert result.exit_code == 64 and not asked


def test_what_could_not_be_done_is_2(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    result, _ = run("lake.db.t", "--key-id", "k", answer=KeyNotFoundError("no key 'k'", "make one"))
    assert (result.exit_code, result.stderr) == (2, "error: no key 'k'\nhint: make one\n")


def test_decrypt(run: Callable[..., tuple[Result, list[Any]]]) -> None:
    answer = {
        "table": "lake.db.t",
        "old_key_id": "k1",
        "files": 2,
        "bytes": 10,
        "committed": True,
        "message": "plaintext now",
    }
    result, asked = run("decrypt", "lake.db.t", "--confirm", answer=answer)
    assert asked == ["decrypt_table", "lake.db.t", True]
    assert (result.exit_code, result.stdout.strip()) == (0, "✓ lake.db.t: plaintext now")
    _, asked = run("decrypt", "lake.db.t", "--output", "json", answer=answer)
    assert asked[2] is False


def test_bad_arguments() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        encrypt_table("spark", " ", "k1")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a key id"):
        encrypt_table("spark", "lake.db.t", 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="max_bytes is 0"):
        encrypt_table("spark", "lake.db.t", "k1", max_bytes=0)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        purge_plaintext("spark", None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'/old' is not a list of folders"):
        purge_plaintext("spark", "lake.db.t", folders="/old")  # type: ignore[arg-type]
