"""How far a verification is, as people see it."""

import json
import time

import pytest
from py4j.protocol import Py4JNetworkError

from pyspark_iceberg_crypto.verbs import _progress

FOUND = {
    "step": "manifests",
    "unit": "files",
    "done": 1200,
    "total": 5000,
    "bytes": 2_000_000,
    "bytes_total": 8_000_000,
    "seconds": 10.0,
    "seconds_left": 95.2,
    "table": None,
    "tables_done": 0,
    "tables_total": 0,
}


def test_a_line() -> None:
    assert _progress.amount(FOUND) == "1,200 of 5,000 files, 2.0 MB of 8.0 MB, 1 min 35 s left"
    unknown = {**FOUND, "total": 0, "bytes_total": 0, "seconds_left": None}
    assert _progress.amount(unknown) == "1,200 files"
    assert _progress.amount({**unknown, "done": 1}) == "1 file"


def test_the_table_of_many() -> None:
    assert _progress.place(FOUND) == "manifests"
    of_many = {**FOUND, "table": "lake.db.\x1bt", "tables_done": 2, "tables_total": 40}
    assert _progress.place(of_many) == r"3 of 40 tables, lake.db.\x1bt: manifests"
    ended = {**of_many, "tables_done": 40}
    assert _progress.place(ended) == r"40 of 40 tables, lake.db.\x1bt: manifests"
    at_once = {**FOUND, "unit": "tables", "done": 3, "total": 40, "bytes_total": 0}
    assert _progress.amount(at_once) == "3 of 40 tables, 1 min 35 s left"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3599.6, "1 h 0 min"), (90_000, "25 h 0 min")],
)
def test_a_time(seconds: float, said: str) -> None:
    assert _progress.duration(seconds) == said


def test_lines_are_written_while_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_progress, "_LINE_EVERY_SECONDS", 0.01)
    asked = []

    def ask() -> str:
        asked.append(1)
        if len(asked) == 2:
            raise Py4JNetworkError("gone")
        return json.dumps(FOUND)

    with _progress.shown("lake.db.t", ask):
        until = time.monotonic() + 10
        while len(asked) < 4 and time.monotonic() < until:
            time.sleep(0.01)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert set(lines) == {
        "lake.db.t: manifests, 1,200 of 5,000 files, 2.0 MB of 8.0 MB, 1 min 35 s left"
    }


def test_a_bar_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_progress, "_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    asked = []

    def ask() -> str:
        asked.append(1)
        return json.dumps(FOUND)

    with _progress.shown("lake.db.t", ask):
        until = time.monotonic() + 10
        while len(asked) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    assert len(asked) >= 3


def test_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: False)
    assert not _progress.is_wanted(None)
    assert _progress.is_wanted(True)
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    assert _progress.is_wanted(None)
    assert not _progress.is_wanted(False)
