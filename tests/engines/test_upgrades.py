"""Tables that each engine and each Iceberg wrote are read and written on by all others.

Spark 3.5, 4.0 and 4.1 and Flink, at the same time; stock Iceberg in these Sparks, where it encrypts, which is on Hive.
Python without Spark reads what all of them wrote.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from harness.classes import CATALOG, IMPLEMENTATIONS, SPARK_CATALOG
from harness.jars import ROOT
from harness.keystore import make_keystore
from harness.other_spark import OtherSpark
from harness.world import STOCK, catalog_conf
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table as PyIcebergTable
from servers.flink import VERSIONS, Flink
from servers.metastore import start_metastore
from servers.rest import start_rest_server

from pyspark_iceberg_crypto import Keystore
from pyspark_iceberg_crypto.reader import open_table

pytestmark = [pytest.mark.nightly, pytest.mark.slow]

OLDER = ("4.0", "3.5")
MERGE_ON_READ = "'format-version'='3', 'write.delete.mode'='merge-on-read'"


@dataclass
class Table:
    """A table of the matrix.

    Attributes:
        names: by which name each catalog that has it knows it.
        ids: those that must be in it.
    """

    names: list[str]
    ids: set[int] = field(default_factory=set)

    def row(self, number: int) -> str:
        return f"({number}, 'row {number}')"


class Engine(Protocol):
    """What reads and writes tables."""

    name: str

    def has(self, name: str) -> bool: ...

    def ids(self, names: Iterable[str]) -> dict[str, set[int]]: ...

    def insert(self, rows: dict[str, str]) -> None: ...


@dataclass
class OnSpark:
    """A Spark, with all catalogs."""

    name: str
    session: OtherSpark

    def has(self, name: str) -> bool:
        return True

    def ids(self, names: Iterable[str]) -> dict[str, set[int]]:
        return {
            name: {row[0] for row in self.session.sql(f"SELECT id FROM {name}")} for name in names
        }

    def insert(self, rows: dict[str, str]) -> None:
        for name, row in rows.items():
            self.session.sql(f"INSERT INTO {name} VALUES {row}")

    def create(self, name: str) -> Table:
        """A table with a deletion vector, where its Iceberg can write one into an encrypted table."""
        self.session.sql(
            f"CREATE TABLE {name} (id BIGINT, note STRING) USING iceberg"
            f" TBLPROPERTIES ('encryption.key-id'='k1', {MERGE_ON_READ})"
        )
        made = Table([name], ids={1, 3})
        rows = [made.row(1), made.row(3)]
        if self.session.versions["iceberg"].startswith("1.11."):
            self.insert({name: ", ".join(rows)})
        else:
            self.insert({name: ", ".join([*rows, made.row(2)])})
            self.session.sql(f"DELETE FROM {name} WHERE id = 2")
            assert self.session.sql(f"SELECT count(*) FROM {name}.delete_files") == [[1]]
        return made


@dataclass
class OnFlink:
    """Flink, with the catalogs that it has without Hive's jars and SQLite's locks."""

    flink: Flink
    catalogs: dict[str, str]

    @property
    def name(self) -> str:
        return f"Flink {self.flink.version}"

    def has(self, name: str) -> bool:
        return name.split(".")[0] in self.catalogs

    def ids(self, names: Iterable[str]) -> dict[str, set[int]]:
        """In one statement: each takes the client some seconds."""
        found: dict[str, set[int]] = {name: set() for name in names}
        every = " UNION ALL ".join(f"SELECT '{name}', id FROM {name}" for name in found)
        batch = "SET 'execution.runtime-mode' = 'batch'"
        for name, number in self.flink.query(batch, *self.catalogs.values(), every):
            found[name].add(int(number))
        return found

    def insert(self, rows: dict[str, str]) -> None:
        inserts = [f"INSERT INTO {name} VALUES {row}" for name, row in rows.items()]
        self.flink.sql("SET 'table.dml-sync' = 'true'", *self.catalogs.values(), *inserts)

    def create(self, name: str) -> Table:
        made = Table([name], ids={1, 3})
        columns = "(id BIGINT, note STRING) WITH ('encryption.key-id' = 'k1')"
        self.flink.sql(*self.catalogs.values(), f"CREATE TABLE {name} {columns}")
        self.insert({name: f"{made.row(1)}, {made.row(3)}"})
        return made


@dataclass
class OnPython:
    """Python without Spark, which reads."""

    rest: str
    hive: str
    kms: Keystore
    name: str = "Python"

    def ids(self, names: Iterable[str]) -> dict[str, set[int]]:
        return {name: set(self.table(name).scan().to_arrow()["id"].to_pylist()) for name in names}

    def table(self, name: str) -> PyIcebergTable:
        catalog, _, identifier = name.partition(".")
        if catalog == "lake":
            return open_table(RestCatalog(catalog, uri=self.rest), identifier, kms=self.kms)
        return open_table(HiveCatalog(catalog, uri=self.hive), identifier, kms=self.kms)


@dataclass
class Matrix:
    """All engines."""

    sparks: list[OnSpark]
    flink: OnFlink
    python: OnPython

    @property
    def engines(self) -> list[Engine]:
        return [*self.sparks, self.flink]


def pythons() -> list[Path]:
    """Those of the virtual environments with each Spark, the newest's first.

    Skips where `make matrix` has not made them.
    """
    every = [Path(sys.executable), *(ROOT / f".venv-{spark}" / "bin" / "python" for spark in OLDER)]
    for python in every:
        if not python.exists():
            pytest.skip(f"{python} is not there: `make matrix` makes it")
    return every


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp("upgrades")
    found = pythons()
    keystore = make_keystore(folder, {"k1": 256})
    with ExitStack() as stack:
        rest = start_rest_server(folder / "rest.db", folder / "rest", folder / "rest.log")
        stack.callback(rest.stop)
        hive = start_metastore(folder / "metastore", folder / "hive")
        stack.callback(hive.stop)
        kms = {
            "encryption.kms.keystore.path": str(keystore.path),
            "encryption.kms.keystore.password-file": str(keystore.password_file),
        }
        rest_options = {"type": "rest", "uri": rest.uri, "encryption.kms-type": "keystore", **kms}
        conf = catalogs(folder, rest_options, hive.uri, kms)
        sparks = []
        for i, python in enumerate(found):
            spark = stack.enter_context(OtherSpark(python, conf, folder / f"spark-{i}.log"))
            versions = f"Spark {spark.versions['spark']}, Iceberg {spark.versions['iceberg']}"
            sparks.append(OnSpark(versions, spark))
        flink = Flink(VERSIONS[0], folder / "flink").start()
        stack.callback(flink.stop)
        own = Keystore(path=str(keystore.path), password_file=str(keystore.password_file))
        yield Matrix(
            sparks,
            OnFlink(flink, {"lake": create_catalog("lake", rest_options)}),
            OnPython(rest.uri, hive.uri, own),
        )


def catalogs(
    folder: Path, rest: dict[str, str], metastore: str, kms: dict[str, str]
) -> dict[str, str]:
    """Spark's: lake on REST, hive and stock on one metastore."""
    hive = {"type": "hive", "uri": metastore, "warehouse": str(folder / "hive"), **kms}
    uncached = {"cache-enabled": "false"}
    return {
        "spark.master": "local[1]",
        "spark.driver.memory": "700m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        **catalog_conf("lake", SPARK_CATALOG, {**rest, **uncached}),
        **catalog_conf(
            "hive", SPARK_CATALOG, {**hive, **uncached, "encryption.kms-type": "keystore"}
        ),
        **catalog_conf(
            "stock", STOCK, {**hive, **uncached, "encryption.kms-impl": IMPLEMENTATIONS["keystore"]}
        ),
    }


def create_catalog(name: str, options: dict[str, str]) -> str:
    every = {**options, "encryption.catalog-type": options["type"], "type": "iceberg"}
    every["catalog-impl"] = CATALOG
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
    return f"CREATE CATALOG {name} WITH ({listed})"


def test_each_reads_and_writes_what_the_others_wrote(matrix: Matrix) -> None:
    newest, *_ = matrix.sparks
    for catalog in ("lake", "hive"):
        newest.session.sql(f"CREATE NAMESPACE {catalog}.db")
    tables = list(written_by_each(matrix))
    assert len(tables) == 3 * len(matrix.sparks) + 1

    for i, engine in enumerate(matrix.engines):
        rows = {}
        for table in tables:
            for j, name in enumerate(filter(engine.has, table.names)):
                new = 100 * (i + 1) + j
                rows[name] = table.row(new)
                table.ids.add(new)
        engine.insert(rows)
    for engine in matrix.engines:
        expected = {name: t.ids for t in tables for name in t.names if engine.has(name)}
        assert engine.ids(expected) == expected, engine.name
    everything = {name: table.ids for table in tables for name in table.names}
    assert matrix.python.ids(everything) == everything
    for spark in matrix.sparks:
        for table in tables:
            report = spark.session.verify(table.names[0])
            assert report["ok"], (spark.name, report)


def written_by_each(matrix: Matrix) -> Iterator[Table]:
    for i, spark in enumerate(matrix.sparks):
        yield spark.create(f"lake.db.spark_{i}")
        for catalog in ("hive", "stock"):
            made = spark.create(f"{catalog}.db.{catalog}_{i}")
            made.names = [f"hive.db.{catalog}_{i}", f"stock.db.{catalog}_{i}"]
            yield made
    yield matrix.flink.create("lake.db.flink")
