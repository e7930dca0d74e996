"""What the rotations make of the JVM's answer, and the command `rotate`."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from click.testing import Result
from doubles.in_process import answering

from pyspark_iceberg_crypto import (
    CancelledError,
    ConfigurationError,
    KeyNotFoundError,
    NotEncryptedError,
    NotSupportedError,
    _jvm,
    key_versions_in_use,
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
    "value_keys": 0,
    "value_keys_left": None,
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
    assert asked == ["rotate_master_key", "lake.db.t", "k2", None, False]
    assert result.exit_code == 0
    assert result.stdout.strip() == f"✓ lake.db.t: {MASTER['message']}"
    result, asked = run("lake.db.t", "--output", "json", answer=MASTER)
    assert asked == ["rotate_master_key", "lake.db.t", None, None, False]
    path = "s3://bucket/a.b/t"
    _, asked = run(path, "--from-catalog", "old", answer=MASTER)
    assert asked == ["rotate_master_key", path, None, "old", False]
    assert json.loads(result.stdout) == MASTER


SAME = {**MASTER, "new_key_id": "k1", "old_versions": "1", "message": "nothing is newer"}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (SAME, 1),
        ({**SAME, "committed": False}, 1),
        ({**SAME, "new_versions": "2"}, 0),
        ({**SAME, "old_versions": None, "new_versions": None}, 0),
        ({**SAME, "value_keys": 1}, 0),
    ],
)
def test_a_rotation_to_the_same_version_is_not_green(
    run: Command, answer: dict[str, Any], code: int
) -> None:
    result, _ = run("lake.db.t", answer=answer)
    assert result.exit_code == code
    assert result.stdout.strip() == f"{'!' if code else '✓'} lake.db.t: nothing is newer"
    assert run("lake.db.t", "--output", "json", answer=answer)[0].exit_code == code


def test_the_kek(run: Command) -> None:
    result, asked = run("lake.db.t", "--kek", "--rewrap", "--dry-run", answer=KEK)
    assert asked == ["rotate_kek", "lake.db.t", True, True]
    assert result.exit_code == 0
    assert result.stdout.strip() == rf"· lake.db.t\x1b[31m: {KEK['message']}"


@pytest.mark.parametrize(
    "options",
    [
        ("--kek", "--new-key-id", "k2"),
        ("--rewrap",),
        ("--kek", "--from-catalog", "old"),
        ("--again",),
        ("--kek", "--older-than-days", "3"),
    ],
)
def test_options_that_contradict(run: Command, options: tuple[str, ...]) -> None:
    result, asked = run("lake.db.t", *options)
    assert result.exit_code == 64 and not asked


def test_what_could_not_be_done_is_2(run: Command) -> None:
    result, _ = run("lake.db.t", answer=KeyNotFoundError("no key 'k1'", "make one"))
    assert result.exit_code == 2
    assert result.stderr == "error: no key 'k1'\nhint: make one\n"


def listed(name: str, view: bool = False, failure: str | None = None) -> dict[str, Any]:
    return {"name": name, "view": view, "failure": failure, "hint": None}


def test_a_cancel_ends_the_rotation_of_all_tables(run: Command) -> None:
    def answer(method: str, name: str, *_: Any) -> Any:
        if method == "list_tables":
            return [listed(f"lake.db.t{i}") for i in range(50)]
        raise CancelledError("the call was cancelled", "call it again")

    result, _ = run("lake.db.*", "--new-key-id", "k2", answer=answer)
    assert result.exit_code == 2 and "the call was cancelled" in result.stderr


def test_all_tables_of_a_namespace(run: Command) -> None:
    def answer(method: str, name: str, *_: Any) -> Any:
        if method == "list_tables":
            names = ("lake.db.t", "lake.db.plain", "lake.db.gone")
            denied = listed("lake.db.u", failure="denied")
            return [*map(listed, names), listed("lake.db.v", view=True), denied]
        if method == "wrapping_version":
            return 3
        if method == "master_key_use" and name != "lake.db.plain":
            return use(name, 2)
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
        "current": [],
    }
    result, _ = run("lake", answer=answer)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "lake: 1 table, 2 left, 2 skipped"
    result, asked = run("lake", "--kek", answer=lambda m, *_: [] if m == "list_tables" else KEK)
    assert (result.exit_code, asked) == (0, ["list_tables", "lake"])


def use(table: str, *versions: int | None, key_id: str = "k1", made: float = 0) -> dict[str, Any]:
    """What master_key_use tells."""
    keks = [
        {"masterKeyId": key_id, "version": one, "madeAt": made, "encrypts": True}
        for one in versions
    ]
    return {"table": table, "key_id": key_id, "keks": keks, "value_keys": []}


def test_value_keys_of_other_master_keys(run: Command) -> None:
    """They are looked at, and told when they stay under another master key than the one asked for."""
    rotated: list[tuple[str, Any]] = []

    def answer(method: str, name: str, *more: Any) -> Any:
        if method == "list_tables":
            return [listed("same"), listed("hr")]
        if method == "wrapping_version":
            return 3
        if method == "master_key_use":
            own = {"masterKeyId": "k1", "version": 3, "madeAt": 0}
            other = {"masterKeyId": "k3", "version": versions_of_k3, "madeAt": 0}
            return use(name, 3) | {"value_keys": [own] if name == "same" else [own, other]}
        rotated.append((name, more[0]))
        left = None if more[0] is None else "hr (k3)"
        return {**MASTER, "table": name, "value_keys": 2, "value_keys_left": left}

    versions_of_k3 = 3
    result, _ = run("lake", answer=answer)
    assert (result.exit_code, rotated) == (0, [])
    versions_of_k3 = 2
    result, _ = run("lake", answer=answer)
    assert (result.exit_code, rotated) == (0, [("hr", None)])
    versions_of_k3 = 3
    result, _ = run("lake", "--new-key-id", "k1", "--output", "json", answer=answer)
    assert (result.exit_code, rotated) == (1, [("hr", None), ("hr", "k1")])
    (left,) = json.loads(result.stdout)["left"]
    assert left["table"] == "hr"
    assert "hr (k3)" in left["problem"] and "rotate_value_key" in left["hint"]


def test_tables_that_have_the_key_already(run: Command) -> None:
    rotated: list[tuple[Any, ...]] = []

    def answer(method: str, name: str, *more: Any) -> Any:
        if method == "list_tables":
            return [listed("new"), listed("old"), listed("both"), listed("other"), listed("mute")]
        if method == "wrapping_version":
            asked_for.append(more[0])
            return None if more[0] == "mute" else 3
        if method == "master_key_use":
            return {
                "new": use(name, 3),
                "old": use(name, 2),
                "both": use(name, 3, 2),
                "other": use(name, 3, key_id="k2"),
                "mute": use(name, None, key_id="mute"),
            }[name]
        rotated.append((name, *more))
        return {**MASTER, "table": name}

    def names(*arguments: str) -> list[str]:
        rotated.clear()
        asked_for.clear()
        result, _ = run("lake", *arguments, answer=answer)
        assert result.exit_code == 0, result.output
        return sorted(one[0] for one in rotated)

    asked_for: list[str] = []
    assert names() == ["both", "mute", "old"]
    assert sorted(asked_for) == ["k1", "k2", "mute"]  # once each
    assert names("--new-key-id", "k1") == ["both", "mute", "old", "other"]
    assert names("--new-key-id", "mute") == ["both", "new", "old", "other"]
    assert len(names("--again")) == len(names("--from-catalog", "old")) == 5
    assert asked_for == []
    result, _ = run("lake", answer=answer)
    assert "lake: 3 tables, 0 left, 2 current before, 0 skipped" in result.stdout


def test_tables_with_a_young_kek(run: Command) -> None:
    now = time.time() * 1000

    def answer(method: str, name: str, *_: Any) -> Any:
        if method == "list_tables":
            return [listed("young"), listed("two"), listed("kept"), listed("old")]
        if method == "master_key_use":
            made = {"old": now - 9 * 86_400_000}.get(name, now)
            found = use(name, *((1,) if name in ("young", "old") else (1, 1)), made=made)
            if name == "kept":  # for a while, for what may still be under it
                found["keks"][0] |= {"madeAt": now - 1, "encrypts": False}
            return found
        return {**KEK, "table": name}

    def done(*more: str) -> list[str]:
        result, _ = run("lake", "--kek", "--output", "json", *more, answer=answer)
        return [one["table"] for one in json.loads(result.stdout)["done"]]

    assert done() == ["young", "two", "kept", "old"]
    assert done("--older-than-days", "7") == ["old"]
    assert done("--older-than-days", "7", "--rewrap") == ["two", "old"]


def test_versions_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(method: str, name: str, *more: Any) -> Any:
        if method == "list_tables":
            return [listed("a"), listed("b"), listed("c"), listed("v", view=True)]
        if method == "wrapping_version":
            if more == ("gone",):
                raise KeyNotFoundError("no key 'gone'", "make one")
            return 7
        told = {"a": use("a", 2), "b": use("b", 2, 6), "c": use("c", None, key_id=mute)}
        if told[name]["key_id"] == "denied":
            raise NotSupportedError("no", "hint")
        return told[name]

    monkeypatch.setattr(_jvm, "run", answering(answer))
    mute = "gone"
    report = key_versions_in_use("spark", "lake")  # type: ignore[arg-type]
    assert str(report).splitlines() == [
        "gone: version unknown: 1 table; the KMS did not answer: no key 'gone'",
        "k1: version 2: 2 tables; version 6: 1 table; 7 wraps now; no table needs 1, 3-5",
        "lake: 3 tables, 0 not looked at, 1 skipped",
    ]
    assert not report.ok and report.not_needed("gone") == report.not_needed("none") == []
    first = report.to_dict()["keys"][1]
    assert first["in_use"] == {"2": 2, "6": 1} and first["not_needed"] == [1, 3, 4, 5]
    mute = "denied"
    report = key_versions_in_use("spark", "lake")  # type: ignore[arg-type]
    assert [one["table"] for one in report.left] == ["c"]
    assert report.not_needed("k1") == []
    assert "✗ c: no" in str(report) and "no table needs" not in str(report)


def test_bad_arguments() -> None:
    for bad in ({"kek": True, "new_key_id": "k2"}, {"rewrap": True}):
        with pytest.raises(ConfigurationError, match="two rotations"):
            rotate_catalog("spark", "lake", **bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a catalog's name"):
        rotate_catalog("spark", " ")  # type: ignore[arg-type]
    for more in ({"older_than_days": 3}, {"older_than_days": -1, "kek": True}, {"threads": 0}):
        with pytest.raises(ConfigurationError, match=next(iter(more))):
            rotate_catalog("spark", "lake", **more)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        rotate_kek("spark", "")  # type: ignore[arg-type]
