"""Attacks on the files of a table, over every catalog and format: the rows are right, or a typed error names the file.

docs/tamper.md says which attack is noticed by what; this is where that is checked. Two tables of each format, one of
the four by day, and half of the attacks on each; `make soak` makes all of them on eight tables, and 500 flips a file
kind on one catalog.
"""

import os
import random
import re
from typing import Any

import pytest
from harness.files import changed
from harness.lake import Lake
from harness.world import KINDS, ON_STOCK, World
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import verify_table
from tamper.attacks import ATTACKS, FLIP
from tamper.documented import table_of_document
from tamper.victim import FILE_KINDS, Victim, make_victim, outcome, scan

FLIPS = int(os.environ.get("ICEBERG_CRYPTO_FLIPS", "0"))
CAMPAIGN = FLIPS > 0
SEED = int(os.environ.get("ICEBERG_CRYPTO_SEED", "20261121"))
FORMATS = ("parquet", "avro")
# One format a catalog, both in a campaign: how a file is read does not depend on the catalog.
TABLES = [
    (kind, form)
    for i, kind in enumerate(KINDS)
    for j, form in enumerate(FORMATS)
    if CAMPAIGN or i % 2 == j
]
BY_DAY = ("jdbc",)
UNCACHED = {"cache-enabled": "false", "rest-table-cache.max-entries": "0"}

pytestmark = pytest.mark.skipif(ON_STOCK, reason="stock Iceberg has its own test of this")


DOCUMENTED = table_of_document("attack")


def when(table: tuple[str, str]) -> Any:
    """By day on some catalogs, but in a campaign on all."""
    night = [] if CAMPAIGN or table[0] in BY_DAY else [pytest.mark.nightly]
    return pytest.param(table, marks=night)


@pytest.fixture(scope="module", params=map(when, TABLES), ids="-".join)
def victim(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> Victim:
    kind, file_format = request.param
    lake = Lake(spark, world, kind, f"enc_{kind}").with_options(UNCACHED)
    return make_victim(lake, file_format)


def test_the_document_has_every_attack() -> None:
    columns = {"Parquet data", "Avro data", *FILE_KINDS[1:]}
    assert set(DOCUMENTED) == {(attack, column) for attack in ATTACKS for column in columns}


def flips_of(kind: str) -> int:
    """All in a campaign on one catalog, as reading a file does not depend on it; some on the others."""
    if not CAMPAIGN:
        return 1
    return FLIPS if kind == KINDS[0] else 1 + FLIPS // 25


def chosen(victim: Victim) -> list[str]:
    """FLIP and every second of the rest, the others on the format's next table."""
    turn = KINDS.index(victim.lake.kind) // 2
    return [a for i, a in enumerate(ATTACKS) if CAMPAIGN or a == FLIP or i % 2 == turn]


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_attacks(victim: Victim, kind: str) -> None:
    column = f"{victim.format.capitalize()} data" if kind == "data" else kind
    rng = random.Random(f"{SEED}-{victim.lake.kind}-{victim.format}-{kind}")
    flips = flips_of(victim.lake.kind)
    problems = []
    for attack in chosen(victim):
        for number in range(flips if attack == FLIP else 1):
            where = f"{attack} (number {number}, seed {SEED}) on the {column}"
            try:
                noticed = victim.attack(kind, attack, rng)
            except AssertionError as e:
                problems.append(f"{where}: {e}")
                continue
            expected = DOCUMENTED[attack, column]
            if noticed not in expected if noticed else expected:
                problems.append(f"{where}: {noticed}, but docs/tamper.md says {expected}")
    assert victim.scan() == victim.answer, "the file that was put back does not read"
    assert not problems, f"{len(problems)} attacks:\n" + "\n".join(problems)


def found_by_java(victim: Victim) -> tuple[str, dict[str, tuple[Any, ...]]]:
    """Where the metadata is, and what a deep verification says of each file."""
    with verify_table(victim.lake.spark, victim.table, deep=True) as report:
        rows = [told(row) for row in report.files.collect()]
        assert report.metadata_location is not None
        return report.metadata_location, {row[1]: row for row in rows}


def told(file: Any) -> tuple[Any, ...]:
    """What is compared; the words for what could not be read are those of each language's libraries."""
    words = None if file.code == "unreadable" else file.problem
    return (file.kind, file.path, file.format, file.length, file.magic, file.code, words)


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_python_reports_what_java_does(victim: Victim, kind: str) -> None:
    """Without the JVM, a deep verification finds the same of each file; by day of a quarter of the attacks on each."""
    from pyspark_iceberg_crypto.reader import verify_table as verify_in_python

    properties = {"encryption.kms-type": "keystore", **victim.lake.world.keystore_options()}
    if victim.lake.kind in ("hive", "rest"):  # their metadata has no MAC
        properties["encryption.metadata-authentication"] = "off"
    rng = random.Random(f"{SEED}-{victim.lake.kind}-{victim.format}-{kind}-reports")
    target = victim.targets[kind]
    before = target.read_bytes()
    every = list(ATTACKS)
    for attack in [None, *(every if CAMPAIGN else every[FILE_KINDS.index(kind) :: 4])]:
        after = before if attack is None else ATTACKS[attack](before, victim.sources[kind], rng)
        with changed({target: before if after is None else after}):
            location, expected = found_by_java(victim)
            report = verify_in_python(location, properties=properties, name=victim.table, deep=True)
        assert {file.path: told(file) for file in report.files} == expected, (
            f"{attack}, seed {SEED}"
        )


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_a_file_that_is_gone_is_named(victim: Victim, kind: str) -> None:
    target = victim.targets[kind]
    away = target.rename(target.with_name("away"))
    try:
        with pytest.raises(Exception, match=re.escape(target.name)):
            victim.scan()
    finally:
        away.rename(target)


@pytest.mark.nightly
def test_stock_iceberg_returns_fewer_rows(spark: SparkSession, world: World) -> None:
    """The control: the very same file, through stock Iceberg's Hive catalog and ours."""
    lake = Lake(spark, world, "hive", "enc_hive").with_options(UNCACHED)
    victim = make_victim(lake, "avro")
    stock = lake.table("t", "stock_hive")
    assert scan(lake, stock) == victim.answer
    target = victim.targets["data"]
    whole = target.read_bytes()
    for cut in (whole[: len(whole) // 2], whole[: 8 + (1 << 20) + 28]):
        with changed({target: cut}):
            assert 0 < scan(lake, stock)[0] < victim.answer[0]
            assert outcome(victim, target) == "length"
    with changed({target: whole + b"more"}):
        assert scan(lake, stock) == victim.answer
        assert outcome(victim, target) == "length"
