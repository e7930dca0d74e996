"""What encryption_keys makes of the JVM's answer, how it looks, and the command's exit codes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from doubles.in_process import answering, keys_json, row

from pyspark_iceberg_crypto import ConfigurationError, encryption_keys
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.verbs.keys import of

UGLY = "<script>alert(1)</script>[red]\x1b[31m"


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


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (keys_json(), 0),
        (keys_json(row("kek", "old", overdue=True)), 1),
        (keys_json(row("kek", "old", problem="x"), kms_problem="down"), 2),
    ],
    ids=["well", "overdue", "no answer"],
)
def test_the_commands_exit_codes(
    command: Callable[..., tuple[Result, list[Any]]], answer: dict[str, Any], code: int
) -> None:
    assert command("keys", "lake.db.t", answer=answer)[0].exit_code == code
