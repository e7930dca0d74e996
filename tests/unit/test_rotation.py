"""What the rotations make of the JVM's answer, and the command `rotate`."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from click.testing import Result
from doubles.in_process import ANSWERS, answering

from pyspark_iceberg_crypto import ConfigurationError, key_versions_in_use, rotate_kek
from pyspark_iceberg_crypto.jvm import _jvm

Command = Callable[..., tuple[Result, list[Any]]]

MASTER = {**ANSWERS["rotate_master_key"], "new_key_id": "k2"}
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
    result, asked = run("lake.db.t", "--new-key-id", "k2", "--confirm", answer=MASTER)
    assert asked == ["rotate_master_key", "lake.db.t", "k2", None, False]
    assert result.exit_code == 0
    assert result.stdout.strip() == f"✓ lake.db.t: {MASTER['message']}"
    result, asked = run("lake.db.t", "--output", "json", answer=MASTER)
    assert asked == ["rotate_master_key", "lake.db.t", None, None, True]
    path = "s3://bucket/a.b/t"
    _, asked = run(path, "--from-catalog", "old", answer=MASTER)
    assert asked == ["rotate_master_key", path, None, "old", True]
    assert json.loads(result.stdout) == {"ok": True, **MASTER}


SAME = {**ANSWERS["rotate_master_key"], "old_versions": "1", "new_versions": "1"}


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
    assert result.stdout.strip() == f"{'!' if code else '✓'} lake.db.t: done"
    assert run("lake.db.t", "--output", "json", answer=answer)[0].exit_code == code


def test_the_kek(run: Command) -> None:
    result, asked = run("lake.db.t", "--kek", "--rewrap", answer=KEK)
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


def test_all_tables_of_a_namespace(run: Command) -> None:
    left = [{"table": "lake.db.gone", "problem": "no key 'k1'", "hint": "make one"}]
    told = {"done": [MASTER], "left": left, "skipped": ["lake.db.v"], "current": ["lake.db.c"]}
    result, asked = run("lake.db.*", "--new-key-id", "k2", "--output", "json", answer=told)
    assert asked == [
        "rotate_catalog",
        "lake.db.*",
        "k2",
        *(False,) * 2,
        *(None,) * 2,
        False,
        True,
        8,
    ]
    assert result.exit_code == 1
    done = [{"ok": True, **one} for one in told["done"]]
    assert json.loads(result.stdout) == {"ok": False, "target": "lake.db.*", **told, "done": done}
    result, _ = run("lake", answer=told)
    assert result.exit_code == 1
    assert [line.split() for line in result.stdout.splitlines()[-6:]] == [
        ["table", "problem"],
        ["─" * 30],
        ["✗", "lake.db.gone", "no", "key", "'k1'"],
        [],
        ["hint:", "make", "one"],
        ["lake:", "1", "table,", "1", "left,", "1", "current", "before,", "1", "skipped"],
    ]
    many = {**told, "done": [MASTER] * 1000, "left": left * 100_000}
    lines = run("lake", answer=many)[0].stdout.splitlines()
    assert len(lines) < 50 and lines.count("hint: make one") == 1
    assert "  and 980 more; --output json has more" in lines
    assert "  and 99,980 more; --output json has more" in lines
    nothing = {**told, "done": [], "left": []}
    result, asked = run("lake", "--kek", "--older-than-days", "7", answer=nothing)
    assert (result.exit_code, asked[3:7]) == (0, [True, False, None, 7.0])
    assert "Nothing was rotated" in result.stdout
    result, _ = run("lake", "--kek", answer={**nothing, "done": [KEK], "current": []})
    assert result.stdout.splitlines()[-1] == "lake: 1 table, 0 left, 1 skipped"


def test_versions_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[dict[str, Any]] = [
        {
            "key_id": "gone",
            "wraps_now": None,
            "in_use": {},
            "untold": 1,
            "problem": "no key 'gone'",
        },
        {"key_id": "k1", "wraps_now": 7, "in_use": {"2": 2, "6": 1}, "untold": 0, "problem": None},
    ]
    told: dict[str, Any] = {"tables": 3, "left": [], "skipped": ["v"], "unlisted": None}
    monkeypatch.setattr(_jvm, "run", answering(lambda *_: {**told, "keys": keys}))
    report = key_versions_in_use("spark", "lake")  # type: ignore[arg-type]
    assert str(report).splitlines() == [
        "gone: version unknown: 1 table; the KMS did not answer: no key 'gone'",
        "k1: version 2: 2 tables; version 6: 1 table; 7 wraps now; no table needs 1, 3-5",
        "lake: 3 tables, 0 not looked at, 1 skipped",
    ]
    assert not report.ok and report.not_needed("gone") == report.not_needed("none") == []
    first = report.to_dict()["keys"][1]
    assert first["in_use"] == {"2": 2, "6": 1} and first["not_needed"] == [1, 3, 4, 5]
    told["unlisted"] = "other branches may need more"
    report = key_versions_in_use("spark", "lake")  # type: ignore[arg-type]
    assert report.not_needed("k1") == [] and told["unlisted"] in str(report).splitlines()
    told["left"] = [{"table": "c", "problem": "no", "hint": "hint"}]
    report = key_versions_in_use("spark", "lake")  # type: ignore[arg-type]
    assert report.not_needed("k1") == []
    assert "✗   c       no" in str(report) and "no table needs" not in str(report)


def test_bad_arguments() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a table's name"):
        rotate_kek("spark", "")  # type: ignore[arg-type]
