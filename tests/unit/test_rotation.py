"""What the rotations make of the JVM's answer, and the command `rotate`."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from click.testing import Result

from pyspark_iceberg_crypto import (
    ConfigurationError,
    KeyNotFoundError,
    NotEncryptedError,
    rotate_catalog,
    rotate_kek,
)

Command = Callable[..., tuple[Result, list[Any]]]

MASTER = {
    "table": "lake.db.t",
    "old_key_id": "k1",
    "new_key_id": "k2",
    "keks": 2,
    "old_versions": "1, 3",
    "new_versions": "1",
    "kms_calls": 6,
    "committed": True,
    "message": "2 KEKs wrapped by 'k2' instead of 'k1'; no file was rewritten",
}
KEK = {
    "table": "lake.db.t\x1b[31m",
    "key_id": "k1",
    "old_kek_id": "a",
    "new_kek_id": None,
    "rewrapped": 3,
    "removed_keks": 1,
    "kept_keks": 0,
    "kms_calls": 3,
    "committed": False,
    "message": "a new KEK would be in use; nothing was changed",
}


@pytest.fixture
def run(command: Command) -> Command:
    """Run the command; gives its result, and what the JVM was asked."""
    return partial(command, "rotate")


def test_the_master_key(run: Command) -> None:
    result, asked = run("lake.db.t", "--new-key-id", "k2", answer=MASTER)
    assert asked == ["rotateMasterKey", "lake.db.t", "k2", False]
    assert result.exit_code == 0
    assert result.stdout.strip() == f"✓ lake.db.t: {MASTER['message']}"
    result, asked = run("lake.db.t", "--output", "json", answer=MASTER)
    assert asked == ["rotateMasterKey", "lake.db.t", None, False]
    assert json.loads(result.stdout) == MASTER


def test_the_kek(run: Command) -> None:
    result, asked = run("lake.db.t", "--kek", "--rewrap", "--dry-run", answer=KEK)
    assert asked == ["rotateKek", "lake.db.t", True, True]
    assert result.exit_code == 0
    assert result.stdout.strip() == rf"· lake.db.t\x1b[31m: {KEK['message']}"


@pytest.mark.parametrize("options", [("--kek", "--new-key-id", "k2"), ("--rewrap",)])
def test_options_that_contradict(run: Command, options: tuple[str, ...]) -> None:
    result, asked = run("lake.db.t", *options)
    assert result.exit_code == 2 and not asked


def test_what_could_not_be_done_is_2(run: Command) -> None:
    result, _ = run("lake.db.t", answer=KeyNotFoundError("no key 'k1'", "make one"))
    assert result.exit_code == 2
    assert result.stderr == "error: no key 'k1'\nhint: make one\n"


def listed(name: str, view: bool = False, failure: str | None = None) -> dict[str, Any]:
    return {"name": name, "view": view, "failure": failure, "hint": None}


def test_all_tables_of_a_namespace(run: Command) -> None:
    def answer(method: str, name: str, *_: Any) -> Any:
        if method == "listTables":
            names = ("lake.db.t", "lake.db.plain", "lake.db.gone")
            denied = listed("lake.db.u", failure="denied")
            return [*map(listed, names), listed("lake.db.v", view=True), denied]
        if name == "lake.db.plain":
            raise NotEncryptedError("Table lake.db.plain: whatever the JVM says")
        if name == "lake.db.gone":
            raise KeyNotFoundError("no key 'k1'", "make one")
        return MASTER

    result, _ = run("lake.db.*", "--new-key-id", "k2", "--output", "json", answer=answer)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "ok": False,
        "target": "lake.db.*",
        "done": [MASTER],
        "left": [
            {"table": "lake.db.u", "problem": "denied", "hint": ""},
            {"table": "lake.db.gone", "problem": "no key 'k1'", "hint": "make one"},
        ],
        "skipped": ["lake.db.v", "lake.db.plain"],
    }
    result, _ = run("lake", answer=answer)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "lake: 1 table, 2 left, 2 skipped"
    result, asked = run("lake", "--kek", answer=lambda m, *_: [] if m == "listTables" else KEK)
    assert (result.exit_code, asked) == (0, ["listTables", "lake"])


def test_bad_arguments() -> None:
    for bad in ({"kek": True, "new_key_id": "k2"}, {"rewrap": True}):
        with pytest.raises(ConfigurationError, match="two rotations"):
            rotate_catalog("spark", "lake", **bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a catalog's name"):
        rotate_catalog("spark", " ")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        rotate_kek("spark", "")  # type: ignore[arg-type]
