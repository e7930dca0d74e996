"""Clients that have SQL only, Spark Connect and JDBC: the procedures give them the rows that a session here has."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.jars import BUILT, ROOT, SPARK_JARS
from harness.programs import run
from harness.sessions import OtherSession
from harness.world import World, catalog_conf
from pyspark.sql import SparkSession
from servers.spark import start_connect, start_thrift

from pyspark_iceberg_crypto import verify_table

pytestmark = pytest.mark.nightly

Rows = list[dict[str, Any]]
OF_A_TABLE = "table => 'db.whole', deep => true, all_snapshots => true, strays => true"


@dataclass
class Shop:
    """A catalog with a table that is whole, one that lacks a file, and a plaintext one, within two namespaces."""

    spark: SparkSession
    conf: dict[str, str]
    lost: Path

    def rows(self, statement: str) -> Rows:
        return [row.asDict() for row in self.spark.sql(statement).collect()]


@pytest.fixture(scope="module")
def shop(
    spark: SparkSession, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    options = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": str(folder / "warehouse"),
        "encryption.kms-type": "keystore",
        **world.keystore_options(),
    }
    catalog = catalog_conf("shop", SPARK_CATALOG, options)
    for key, value in catalog.items():
        spark.conf.set(key, value)
    for name, key in (("db.whole", "k1"), ("db.hr.broken", "k1"), ("db.hr.plain", None)):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS shop.{name.rpartition('.')[0]}")
        encrypted = f"TBLPROPERTIES ('encryption.key-id'='{key}')" if key else ""
        spark.sql(f"CREATE TABLE shop.{name} (id INT, name STRING) USING iceberg {encrypted}")
        for number in range(2):
            spark.sql(f"INSERT INTO shop.{name} VALUES ({number}, 'of a client')")
    lost = min((folder / "warehouse").rglob("broken/data/*.parquet"))
    lost.unlink()
    conf = {**world.session_conf(metastore=folder / "metastore"), **catalog}
    del conf["spark.hadoop.fs.file.impl"]  # Hive wants to set permissions of its own
    del conf["spark.iceberg-crypto.settings-from"]  # as it is by default
    yield Shop(spark, conf, lost)


@dataclass
class Client:
    """One that asks for rows; what its values look like; the text of the error of a statement."""

    rows: Callable[[str], Rows]
    seen: Callable[[Any], Any]
    error: Callable[[str], str]
    session: OtherSession | None = None
    url: str = ""


@pytest.fixture(scope="module", params=["connect", "jdbc"])
def client(
    request: pytest.FixtureRequest, shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp(request.param)
    start = start_connect if request.param == "connect" else start_thrift
    server = start(shop.conf, folder / "server")
    try:
        if request.param == "jdbc":
            yield beeline(server.uri, folder)
        else:
            with OtherSession({"spark.remote": server.uri}) as session:
                yield connected(session, server.uri)
    finally:
        server.stop()


def connected(session: OtherSession, url: str) -> Client:
    def error(statement: str) -> str:
        with pytest.raises(RuntimeError) as raised:
            session.sql(statement)
        return str(raised.value)

    return Client(session.sql, lambda value: value, error, session, url)


def beeline(url: str, folder: Path) -> Client:
    """Hive's JDBC client, a JVM for each statement."""
    command = [SPARK_JARS.parent / "bin" / "beeline", "-u", url, "-n", "anyone"]
    command += ["--outputformat=tsv2", "--silent=true"]

    def rows(statement: str) -> Rows:
        said = run([*command, "-e", statement], folder).removeprefix(f"0: {url}> ")
        return list(csv.DictReader(said.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))

    def error(statement: str) -> str:
        command_and_errors = ["bash", "-c", 'exec "$@" 2>&1', "-", *command]
        return run([*command_and_errors, "-e", statement], folder, expect=1)

    return Client(rows, as_text, error)


def as_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    return str(value).rstrip("0").rstrip(".") if isinstance(value, datetime) else str(value)


@pytest.mark.parametrize(
    "call",
    [
        f"verify_encryption({OF_A_TABLE})",
        "verify_encryption(table => 'db.hr.broken')",
        "verify_encryption(namespace => 'db.hr')",
        "verify_encryption()",
        "encryption_keys(table => 'db.whole')",
    ],
)
def test_the_same_rows(shop: Shop, client: Client, call: str) -> None:
    statement = f"CALL shop.system.{call}"
    expected = shop.rows(statement)
    assert len(expected) > 2
    assert client.rows(statement) == [
        {name: client.seen(value) for name, value in row.items()} for row in expected
    ]


def test_a_problem_is_a_row(shop: Shop, client: Client) -> None:
    rows = client.rows("CALL shop.system.verify_encryption(table => 'db.hr.broken', deep => true)")
    (problem,) = [row for row in rows if row["path"] not in (None, "NULL")]
    assert (problem["kind"], problem["code"]) == ("data", "missing")
    assert problem["path"].endswith(shop.lost.name)
    assert problem["hint"]


def test_an_error_has_its_hint(client: Client) -> None:
    said = client.error("CALL shop.system.verify_encryption(table => 'db.whole', sample => 2)")
    assert "share of the files" in said
    assert "hint: " in said


def test_a_client_sets_up_no_kms(client: Client, world: World) -> None:
    """The server's login would go where the client's settings say."""
    options = {
        "type": "hadoop",
        "warehouse": str(world.root / "theirs"),
        **world.keystore_options(),
    }
    conf = catalog_conf("theirs", SPARK_CATALOG, options | {"encryption.kms-type": "keystore"})
    settings = [f"SET `{name}`=`{value}`" for name, value in conf.items()]
    if client.session:
        for setting in settings:
            client.rows(setting)
        settings = []
    said = client.error("; ".join([*settings, "SHOW NAMESPACES IN theirs"]))
    assert "set up by a session" in said
    assert "spark.iceberg-crypto.settings-from" in said


@pytest.mark.parametrize("client", ["connect"], indirect=True)
def test_python_over_spark_connect(shop: Shop, client: Client) -> None:
    """Rows as a DataFrame; a report is that of a session here."""
    assert client.session is not None
    call = "CALL shop.system.verify_encryption()"
    rows = client.session.sql(call, "problem IS NOT NULL")
    assert {row["table"] for row in rows} == {"shop.db.hr.broken", "shop.db.hr.plain"}
    options = {"deep": True, "strays": True}
    there = client.session.verify("shop.db.whole", **options)
    with verify_table(shop.spark, "shop.db.whole", progress=False, **options) as report:
        here = report.to_dict()
    differing = {"seconds", "started_at", "ended_at"}
    assert {k for k in here if here[k] != there[k]} <= differing


@pytest.mark.parametrize("client", ["connect"], indirect=True)
def test_functions_over_spark_connect(client: Client, tmp_path: Path) -> None:
    """They do their work by a procedure; since Spark 4.0 with pyspark-client, which has no JVM, Py4J and Spark."""
    path = str(ROOT)
    if BUILT.spark != "3.5":
        target = tmp_path / "pyspark-client"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
        run([*pip, f"pyspark-client=={BUILT.spark}.*"], tmp_path)
        path = os.pathsep.join([str(target), path])
    program = Path(__file__).with_name("connect_program.py")
    told = json.loads(
        run([sys.executable, program, client.url], tmp_path, {"PYTHONPATH": path}).splitlines()[-1]
    )
    assert told == {
        "of pyspark-client": BUILT.spark != "3.5",
        "verify_table": [True, 4],
        "verify_catalog": [False, ["shop.db.hr.broken", "shop.db.hr.plain"]],
        "encrypt_table, dry run": [False, 2, 2],
        "encrypt_table": True,
        "purge_plaintext": [True, 7],
        "rotate_master_key": "k2",
        "rotate_kek": True,
        "reencrypt_table": [True, 0],
        "prune_encryption_keys": "nothing to remove",
        "repair_table": True,
        "an unknown key": "KeyNotFoundError",
        "encryption_keys": "k2",
        "rotate_catalog": True,
        "key_versions_in_use": True,
        "kms_metrics": "keystore",
        "verify_folder": [True, True, "SparkConnectError"],
        "inspect_file": "PARE",
        "of the driver": "SparkConnectError",
        "stock's catalog": "SparkConnectError",
        "values": ["0", "0", "1", "1", "2", "2"],
        "of another context": [None],
        "a misspelt key": "KeyNotFoundError",
        "value keys": True,
    }
