"""What encryption_keys makes of the JVM's answer, how it looks, and the command's exit codes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import answering

from pyspark_iceberg_crypto import (
    ConfigurationError,
    KeysReport,
    KmsUnavailableError,
    cli,
    encryption_keys,
)
from pyspark_iceberg_crypto.cli import _keys, _session
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.verbs.keys import of

UGLY = "<script>alert(1)</script>[red]\x1b[31m"


def row(kind: str, key_id: str, **more: Any) -> dict[str, Any]:
    found = dict.fromkeys(
        ("encrypted_by", "created_at", "age_days", "kms_answers", "authenticated_wrapping")
    )
    rest = {
        "snapshots": 0,
        "overdue": False,
        "problem": None,
        "used_for": None,
        "key_length": None,
        "key_version": None,
    }
    return {"key_id": key_id, "kind": kind, **found, **rest, **more}


def keys_json(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What PythonApi tells of a table with two snapshots."""
    kms = {"kms_answers": True, "authenticated_wrapping": True}
    kek = {"encrypted_by": "k1", "created_at": "2026-11-01T00:00:00Z", "age_days": 21}
    rows = [
        row("master", "k1", snapshots=2, **kms),
        row("kek", "kek-1", snapshots=2, key_length=16, **kek, **kms),
        row("manifest list", "list-1", encrypted_by="kek-1", snapshots=1, key_length=16),
        row("manifest list", "list-2", encrypted_by="kek-1", snapshots=1, key_length=32),
        *more,
    ]
    found = {
        "table": "lake.db.t",
        "key_id": "k1",
        "data_key_length": None,
        "kek_max_age_days": 730,
        "kms": "Keystore /k.p12",
        "kms_calls": 1,
        "kms_problem": None,
        "rows": rows,
    }
    return {**found, **changes}


def test_a_table_whose_keys_are_all_well(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answer(*arguments: Any) -> Any:
        asked.extend(arguments)
        return keys_json()

    monkeypatch.setattr(_jvm, "run", answering(answer))
    report = encryption_keys("spark", "lake.db.t")  # type: ignore[arg-type]
    assert asked == ["encryption_keys", "lake.db.t"]
    assert report.ok and not report.problems
    assert report.keys[1].age_days == 21
    shown = str(report)
    assert "✓ every key of lake.db.t can be used" in shown
    assert "2 keys" in shown and "128, 256" in shown and "21 days" in shown
    assert "Keystore /k.p12, 1 call; new data keys have 128 bits" in shown
    assert "which were not read" in shown
    assert "\x1b" not in shown
    told = keys_json()
    told |= {"ok": True, "data_key_length": "16", "keys": told.pop("rows")}
    assert json.loads(json.dumps(report.to_dict())) == told


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_table_without_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="table's name"):
        encryption_keys(None, name)  # type: ignore[arg-type]


def test_overdue_and_broken_keys_are_problems() -> None:
    old = row("kek", "old", encrypted_by="k1", age_days=731, overdue=True, kms_answers=True)
    bad = row("manifest list", "l3", used_for="snapshot 7", problem="it does not decrypt")
    report = of(keys_json(old, bad, row("dead", "d1")))
    assert [key.key_id for key in report.problems] == ["old", "l3"]
    shown = str(report)
    assert "✗ 2 keys of lake.db.t with a problem" in shown
    assert "overdue: older than 730 days" in report._repr_html_()
    assert "snapshot 7: it does not decrypt" in report._repr_html_()
    assert "used by nothing" in shown


def test_many_broken_keys_are_counted() -> None:
    bad = [row("manifest list", f"l{i}", problem="gone") for i in range(1000)]
    shown = str(of(keys_json(*bad)))
    assert "and 980 more" in shown
    assert len(shown.splitlines()) < 80


def test_hostile_text_is_escaped() -> None:
    report = of(keys_json(row("kek", UGLY, problem=UGLY)))
    assert "[red]" in str(report)
    assert "\x1b" not in str(report)
    html = report._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<table>" in html


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    @contextmanager
    def session(*_: Any) -> Iterator[str]:
        yield "spark"

    def invoke(answer: KeysReport | Exception, *arguments: str) -> Result:
        def give(*_: Any) -> KeysReport:
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(_session, "session", session)
        monkeypatch.setattr(_keys, "encryption_keys", give)
        return CliRunner().invoke(cli.main, ["keys", "lake.db.t", *arguments])

    return invoke


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (of(keys_json()), 0),
        (of(keys_json(row("kek", "old", overdue=True))), 1),
        (of(keys_json(row("kek", "old", problem="x"), kms_problem="down")), 2),
        (KmsUnavailableError("down", "wait"), 2),
    ],
    ids=["well", "overdue", "no answer", "not loaded"],
)
def test_the_commands_exit_codes(
    run: Callable[..., Result], answer: KeysReport | Exception, code: int
) -> None:
    assert run(answer).exit_code == code


def test_the_command_as_json(run: Callable[..., Result]) -> None:
    found = json.loads(run(of(keys_json()), "--output", "json").stdout)
    assert (found["ok"], found["keys"][0]["kind"]) == (True, "master")
