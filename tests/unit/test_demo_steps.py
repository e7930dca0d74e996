"""The demo's course without Spark: its steps in order, each given what those before found. test_demo.py runs it."""

import inspect
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from doubles.in_process import evidence_json
from rich.console import Console

from pyspark_iceberg_crypto import VerifyReport
from pyspark_iceberg_crypto.demo import story
from pyspark_iceberg_crypto.demo.place import Place


def test_its_steps_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark, csv, report = object(), tmp_path / "flights.csv", VerifyReport.of(evidence_json())
    known = [["AA", 2], ["UA", 1]]
    results = {"session": spark, "load": 4, "verify": report, "show_bytes": "f", "refused": 2}
    given = {
        "session": ("owner",),
        "create": (spark,),
        "load": (spark, csv),
        "change": (spark,),
        "verify": (spark,),
        "show_bytes": (spark, report),
        "read_again": (known,),
        "refused": ("f",),
    }
    told = []

    def step(_: object, title: str, action: Callable[..., Any], *arguments: Any) -> Any:
        inspect.signature(action).bind(*arguments)
        name = action.__name__
        assert arguments == given.get(name, ()), title
        told.append(name)
        return results.get(name)

    monkeypatch.setattr(story._Story, "step", step)
    monkeypatch.setattr(story.flights, "unpack", lambda folder: csv)
    monkeypatch.setattr(story, "answer", lambda of: known if of is spark else None)
    monkeypatch.setattr(story._jvm, "shut_down", lambda of: told.append("shut down"))
    screen = StringIO()
    story._Story(Console(file=screen, width=120), Place(tmp_path)).tell()
    assert told == [
        *("make_keys", "session", "create", "load", "change", "verify", "show_bytes"),
        *("shut down", "read_again", "refused"),
    ]
    assert len(told) - 1 == story.STEPS
    for shown in ("4 flights; 3 left after", "files, all encrypted", "2 ways tried, none gave"):
        assert shown in screen.getvalue()
