"""What doctor makes of the JVM's answers about tables: order, counts, text, exit codes."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import answering

from pyspark_iceberg_crypto import ConfigurationError, TableFinding, cli
from pyspark_iceberg_crypto.cli import _session
from pyspark_iceberg_crypto.doctor import DoctorReport, DoctorTablesReport, diagnose_tables
from pyspark_iceberg_crypto.doctor import _session as doctor
from pyspark_iceberg_crypto.doctor._report import DoctorStep, Status
from pyspark_iceberg_crypto.jvm import _jvm

KINDS = ("plaintext", "key id removed", "no kek", "unauthenticated", "unchecked")  # the worst first


def finding(kind: str, table: str = "lake.db.t") -> dict[str, Any]:
    return {
        "table": table,
        "kind": kind,
        "problem": f"{kind} it is",
        "consequence": f"{kind} is bad",
        "hint": f"repair {table}",
        "repairable": False,
        "repaired": False,
    }


class Tables:
    """What the JVM tells of a catalog whose tables a test sets: names to kinds."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[str, ...]] = {}
        self.others = 0

    def answer(self, method: str, _: Any) -> Any:
        assert method == "examine_tables"
        found = [finding(one, name) for name, kinds in self.tables.items() for one in kinds]
        found.sort(key=lambda one: KINDS.index(one["kind"]))
        many = len(self.tables)
        return {
            "examined": many,
            "encrypted": many,
            "others": self.others,
            "counts": dict(Counter(one["kind"] for one in found)),
            "findings": found[:1000],
            "key_ids": ["k1"] if many else [],
        }


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    made = Tables()
    monkeypatch.setattr(_jvm, "require_session", lambda _: None)
    monkeypatch.setattr(_jvm, "run", answering(made.answer))
    return made


def test_no_table_needs_repair(tables: Tables) -> None:
    tables.tables = {"lake.db.a": (), "lake.db.b": ()}
    tables.others = 2
    found = diagnose_tables(None, "lake.db")  # type: ignore[arg-type]
    assert found.ok
    assert (found.examined, found.encrypted, found.others) == (2, 2, 2)
    assert "✓ no table needs repair (2 tables examined, 2 with a key id; 2 left out: views" in str(
        found
    )


def test_the_worst_comes_first(tables: Tables) -> None:
    kinds = list(KINDS)
    tables.tables = {f"lake.db.{i}": (kind,) for i, kind in enumerate(reversed(kinds))}
    found = diagnose_tables(None, ["lake", "lake.db"])  # type: ignore[arg-type]
    assert [one.kind for one in found.findings] == list(found.counts) == kinds
    assert found.exit_code == 1
    shown = str(found)
    assert "✗ tables need repair" in shown
    assert shown.index("plaintext is bad") < shown.index("unauthenticated is bad")
    assert json.loads(json.dumps(found.to_dict()))["counts"]["plaintext"] == 1


@pytest.mark.parametrize(
    ("kind", "code"), [("no kek", 1), ("unauthenticated", 0), ("unchecked", 2)]
)
def test_what_fails_and_what_is_open(tables: Tables, kind: str, code: int) -> None:
    tables.tables = {"lake.db.t": (kind,)}
    found = diagnose_tables(None, "lake")  # type: ignore[arg-type]
    assert (found.exit_code, found.ok) == (code, code == 0)


def test_many_tables_take_little_room(tables: Tables) -> None:
    tables.tables = {f"lake.db.t{i}": ("plaintext",) for i in range(5000)}
    shown = str(diagnose_tables(None, "lake"))  # type: ignore[arg-type]
    assert " ✗   plaintext      5,000   plaintext is bad" in shown
    assert "and 4,990 more such" in shown
    assert shown.count("hint:") == 1, "the same one but for the name"


def test_what_is_no_name(tables: Tables) -> None:
    for names in (["lake", " "], []):
        with pytest.raises(ConfigurationError, match="not names of tables"):
            diagnose_tables(None, names)  # type: ignore[arg-type]


def test_names_of_strangers_do_nothing_to_the_terminal(tables: Tables) -> None:
    tables.tables = {"lake.db.\x1b[31m[red]": ("plaintext",)}
    found = str(diagnose_tables(None, "lake"))  # type: ignore[arg-type]
    assert "\x1b" not in found
    assert "[red]" in found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tables: Tables) -> Callable[..., Result]:
    tried: list[list[str]] = []

    def steps(_: Any, catalog: str, key_ids: list[str]) -> Iterator[DoctorStep]:
        tried.append(key_ids)
        yield DoctorStep("round trip", Status.OK, key_id="k1")

    def invoke(*arguments: str) -> Result:
        monkeypatch.setattr(_session, "session", lambda *_: nullcontext("spark"))
        monkeypatch.setattr(doctor, "_steps", steps)
        result = CliRunner().invoke(cli.main, ["doctor", *arguments])
        result.tried = tried  # type: ignore[attr-defined]
        return result

    return invoke


def test_the_commands_exit_codes(run: Callable[..., Result], tables: Tables) -> None:
    tables.tables = {"lake.db.t": ()}
    assert run("--tables").exit_code == 0
    tables.tables = {"lake.db.t": ("unchecked",)}
    assert run("--tables").exit_code == 2
    tables.tables = {"lake.db.t": ("plaintext", "unchecked")}
    result = run("--tables", "--output", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["tables"]["counts"] == {"plaintext": 1, "unchecked": 1}
    assert json.loads(run("--output", "json").stdout).keys() == {"ok", "catalog", "steps"}


def test_the_tables_keys_are_tried(run: Callable[..., Result], tables: Tables) -> None:
    tables.tables = {"lake.db.t": ()}
    assert run("--tables", "lake.db").tried == [["k1"]]  # type: ignore[attr-defined]
    assert run("--tables", "--key-id", "k2").tried[-1] == ["k2"]  # type: ignore[attr-defined]


def test_steps_and_tables_make_the_verdict() -> None:
    well = [DoctorStep("round trip", Status.OK, key_id="k1")]
    bad = DoctorTablesReport(1, 1, 0, {"no kek": 1}, [TableFinding(**finding("no kek"))], [])
    assert DoctorReport("lake", well).ok
    assert not DoctorReport("lake", well, bad).ok
    assert DoctorReport("lake", well, bad).exit_code == 1
    assert "tables need repair" in str(DoctorReport("lake", well, bad))
