"""Attacks on what the metadata says, over every catalog and format; docs/tamper.md says what notices which.

What a catalog cannot notice stands there, too: rows of an older state, or what else a REST server is trusted with.
"""

import random

import pytest
from harness.files import changed
from harness.lake import Lake
from harness.world import ON_STOCK, World
from pyspark.sql import SparkSession

from tamper.documented import table_of_document
from tamper.metadata_attacks import (
    METADATA_ATTACKS,
    PLAINTEXT,
    STRIPPED,
    flip_a_value,
    without_snapshots,
)
from tamper.metadata_victim import (
    ERRORS,
    MetadataVictim,
    make_metadata_victim,
    scan,
    versions,
)
from tamper.test_tamper import CAMPAIGN, FLIPS, SEED, TABLES, UNCACHED, when

pytestmark = pytest.mark.skipif(ON_STOCK, reason="these attacks succeed on stock Iceberg")

DOCUMENTED = table_of_document("attack on metadata")
COLUMNS = {"hive": "Hive", "rest": "REST", "jdbc": "JDBC", "hadoop": "Hadoop"}
SERVED = {"old rows", "no rows", "other rows", "other columns", "plaintext rows", "right rows"}


@pytest.fixture(scope="module", params=map(when, TABLES), ids="-".join)
def victim(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> MetadataVictim:
    kind, file_format = request.param
    lake = Lake(spark, world, kind, f"enc_{kind}").with_options(UNCACHED)
    return make_metadata_victim(lake, file_format)


def tables_on(*kinds: str) -> pytest.MarkDecorator:
    """The tables of some catalogs only."""
    chosen = [when(table) for table in TABLES if table[0] in kinds]
    return pytest.mark.parametrize("victim", chosen, indirect=True, ids="-".join)


def test_the_document_has_every_attack_on_metadata() -> None:
    assert set(DOCUMENTED) == {(a, column) for a in METADATA_ATTACKS for column in COLUMNS.values()}


def test_what_is_served_is_served_by_those_who_keep_the_pointer() -> None:
    served = {column for (_, column), outcomes in DOCUMENTED.items() if outcomes & SERVED}
    assert served <= {"REST", "Hadoop"}
    by_hadoop = {
        a for (a, c), outcomes in DOCUMENTED.items() if c == "Hadoop" and outcomes & SERVED
    }
    assert len(by_hadoop) == 3


def test_attacks_on_metadata(victim: MetadataVictim) -> None:
    problems = []
    for attack, make in METADATA_ATTACKS.items():
        try:
            outcome = victim.outcome(make(victim.finds))
        except AssertionError as e:
            problems.append(f"{attack}: {e}")
            continue
        expected = DOCUMENTED[attack, COLUMNS[victim.lake.kind]]
        if outcome not in expected:
            problems.append(f"{attack}: {outcome}, but docs/tamper.md says {expected}")
    assert victim.scan() == victim.states[-1], "the metadata that was put back does not read"
    assert not problems, f"{len(problems)} attacks:\n" + "\n".join(problems)


@tables_on("rest", "hadoop")
@pytest.mark.parametrize("attack", [STRIPPED, PLAINTEXT])
def test_a_catalog_that_refuses_plaintext_tables(victim: MetadataVictim, attack: str) -> None:
    """On REST and Hadoop; Hive and JDBC notice both attacks by themselves."""
    lake = victim.lake.with_options({**UNCACHED, "encryption.plaintext-tables": "refuse"})
    table = lake.table()
    assert scan(lake, table) == victim.states[-1]
    with changed(METADATA_ATTACKS[attack](victim.finds)):
        for statement in (f"SELECT * FROM {table}", f"INSERT INTO {table} VALUES (99, 'x', 'y')"):
            with pytest.raises(
                Exception, match=r"PlaintextException: Table .*\.t: it has no encryption"
            ):
                lake.sql(statement)
    assert scan(lake, table) == victim.states[-1]
    with pytest.raises(Exception, match=r"encryption\.required"):
        lake.sql(f"CREATE TABLE {lake.table('refused')} (id INT) USING iceberg")


@tables_on("hadoop")
def test_metadata_that_is_put_back_is_read_at_once(victim: MetadataVictim) -> None:
    """Iceberg's cache of tables has none that was refused."""
    lake = victim.lake.with_options({"cache-enabled": "true"})
    changes = METADATA_ATTACKS["all snapshots removed"](victim.finds)
    with changed(changes), pytest.raises(ERRORS, match="TamperedException"):
        scan(lake, lake.table())
    assert scan(lake, lake.table()) == victim.states[-1]


@tables_on("hive", "hadoop")
def test_bits_of_values_in_the_metadata(victim: MetadataVictim) -> None:
    """Not on JDBC or REST, where Iceberg tries for 90 s to read metadata that it cannot parse."""
    rng = random.Random(f"{SEED}-{victim.lake.kind}-{victim.format}-metadata")
    for number in range(FLIPS // 2 if CAMPAIGN else 4):
        changes = flip_a_value(victim.finds, rng)
        with changed(changes):
            try:
                answer = victim.scan()
            except ERRORS:
                continue
        assert answer == victim.states[-1], f"number {number}, seed {SEED}: {changes}"
    assert victim.scan() == victim.states[-1], "the metadata that was put back does not read"


def test_metadata_that_failed_its_check_is_not_used(spark: SparkSession, world: World) -> None:
    """The control: after the error of its hash check, stock Iceberg's table on Hive has the edited metadata."""
    lake = Lake(spark, world, "hive", "enc_hive").with_options(UNCACHED)
    table = lake.insert(lake.create(), [1])
    jvm = spark._jvm
    assert jvm is not None
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    stock = load(spark._jsparkSession, lake.table("t", "stock_hive"))
    ours = load(spark._jsparkSession, table)
    lake.insert(table, [2])
    newest = versions(lake, "t")[0]
    with changed({newest: without_snapshots(newest.read_bytes())}):
        for loaded in (stock, ours):
            with pytest.raises(Exception, match="might have been modified"):
                loaded.refresh()
        assert stock.currentSnapshot() is None
        with pytest.raises(Exception, match=r"TamperedException: Table .*\.t: its metadata"):
            ours.currentSnapshot()
    assert lake.ids(table) == [1, 2]
