"""Spark's analyzer loads the tables of a statement one after another; here they are loaded side by side."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.files import change
from harness.jars import build_jars
from harness.jvm import ENVIRONMENT
from harness.lake import Lake
from harness.sessions import OtherSession, joined
from harness.world import World, catalog_conf
from servers.aws import REGION, AwsServer, start_moto
from servers.nessie import java_21, start_nessie
from servers.process import Server

from pyspark_iceberg_crypto import kms_metrics

METADATA = ".metadata.json"


@pytest.fixture
def lake(hadoop: Lake) -> Lake:
    """Where a load checks signed metadata, and another catalog of the session sees the same tables."""
    return hadoop


@pytest.fixture
def meeting(lake: Lake) -> Iterator[Any]:
    """Storage whose files wait for each other."""
    assert lake.spark._jvm is not None
    yield lake.spark._jvm.io.icebergcrypto.testing.NoChmodFileSystem
    lake.spark._jvm.io.icebergcrypto.testing.NoChmodFileSystem.meet("/", 0)


def test_each_is_loaded_once_and_all_at_a_time(lake: Lake, meeting: Any) -> None:
    for name in ("a", "b", "c"):
        lake.insert(lake.create(name), [1, 2])
    fresh = lake.with_options({})  # nothing in its caches
    lake.spark.sql(f"USE {fresh.catalog}.{fresh.namespace}")
    try:
        lake.spark.range(1).createOrReplaceTempView("one")
        meeting.meet(METADATA, 3)
        rows = fresh.rows(
            f"WITH d AS (SELECT id FROM b) SELECT id FROM {fresh.table('a')} JOIN d USING (id)"
            " WHERE id > (SELECT max(id) FROM one) AND id IN (SELECT id FROM c)"
        )
    finally:
        lake.spark.catalog.dropTempView("one")
        lake.spark.sql("USE spark_catalog.default")
    assert rows == [(1,), (2,)]
    assert meeting.met() == 3
    assert kms_metrics(lake.spark, fresh.catalog).unwrap_calls == 3


@pytest.mark.nightly
@pytest.mark.parametrize("with_namespace", [False, True])
def test_names_in_a_view_are_those_of_where_it_was_made(
    lake: Lake, meeting: Any, with_namespace: bool
) -> None:
    for name in ("a", "b"):
        lake.insert(lake.create(name), [1])
    made, current = lake.with_options({}), lake.with_options({})
    prefix = f"{lake.namespace}." if with_namespace else ""
    lake.sql(f"USE {made.catalog}.{lake.namespace}")
    try:
        lake.sql(f"CREATE TEMPORARY VIEW v AS SELECT id FROM {prefix}a JOIN {prefix}b USING (id)")
        lake.sql(f"USE {current.catalog}.{lake.namespace}")
        for name in ("a", "b"):
            lake.sql(f"REFRESH TABLE {made.table(name)}")  # no longer in its cache
        meeting.meet(METADATA, 2)
        assert lake.rows("SELECT id FROM v") == [(1,)]
    finally:
        lake.sql("DROP VIEW IF EXISTS v")
        lake.sql("USE spark_catalog.default")
    assert meeting.met() == 2
    assert kms_metrics(lake.spark, current.catalog).unwrap_calls == 0


def test_each_is_checked_before_the_analyzer_asks(lake: Lake) -> None:
    for name in ("a", "b", "c"):
        lake.create(name)
    fresh = lake.with_options({})
    session: Any = lake.spark._jsparkSession
    jvm: Any = lake.spark._jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(session)  # as a statement does
    plan = (
        session.sessionState()
        .sqlParser()
        .parsePlan(
            f"SELECT * FROM {fresh.table('a')} JOIN {fresh.table('b')} USING (id) JOIN {fresh.table('c')} USING (id)"
        )
    )
    rules = session.extensions().buildHintResolutionRules(session)
    for i in range(rules.size()):
        rules.apply(i).apply(plan)
    until = time.monotonic() + 20
    while kms_metrics(lake.spark, fresh.catalog).unwrap_calls < 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert kms_metrics(lake.spark, fresh.catalog).unwrap_calls == 3


def test_errors_are_those_of_the_analyzer(lake: Lake) -> None:
    good, edited = lake.create("good"), lake.create("edited")
    files = (lake.folder / "edited").glob(f"metadata/**/*{METADATA}")
    newest = max(files, key=lambda path: path.name)
    metadata = json.loads(newest.read_text())
    metadata["schemas"][0]["fields"][0]["doc"] = "written by someone else"
    change(newest, json.dumps(metadata).encode())
    fresh = lake.with_options({})
    good, edited = fresh.table("good"), fresh.table("edited")
    fresh.refused(f"SELECT * FROM {good} JOIN {edited} USING (id)", "metadata is refused")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        fresh.sql(f"SELECT * FROM {good} JOIN {fresh.table('none')} USING (id)")
    assert fresh.ids(good) == []


@pytest.fixture(params=["glue", "nessie"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A catalog's server, and the catalog's properties; Glue's is moto's."""
    started: AwsServer | Server
    if request.param == "glue":
        started = start_moto(tmp_path / "moto.log")
        options = {"glue.endpoint": started.url, "client.region": REGION}
    elif (java := java_21()) is None:
        pytest.skip("Nessie's server needs Java 21 or later")
    else:
        started = start_nessie(java, tmp_path / "nessie.log")
        options = {"uri": started.uri, "ref": "main"}
    yield {"type": request.param, **options}
    started.stop()


@pytest.mark.nightly
def test_on_catalogs_that_keep_a_pointer(
    world: World, server: dict[str, str], tmp_path: Path
) -> None:
    options = {
        **server,
        "warehouse": str(tmp_path / "warehouse"),
        "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "encryption.kms-type": "keystore",
        **world.keystore_options(),
    }
    conf = world.session_conf(metastore=tmp_path / "metastore")
    for name in ("lake", "fresh"):  # with nothing in its caches
        conf |= catalog_conf(name, SPARK_CATALOG, options)
    conf["spark.jars"] += f",{build_jars('kms-jars', 'iceberg-aws-bundle-*.jar')[0]}"
    tables = ("db.a", "db.b", "db.c")
    with OtherSession(conf, ENVIRONMENT) as session:
        session.sql("CREATE NAMESPACE lake.db")
        for number, name in enumerate(tables):
            session.sql(
                f"CREATE TABLE lake.{name} (id INT) TBLPROPERTIES ('encryption.key-id'='k1')"
            )
            session.sql(f"INSERT INTO lake.{name} VALUES (5), ({number})")
        found = session.do(joined, "fresh", tables)
        if server["type"] == "nessie":  # other branches may need files of a registered table, too
            session.sql("CREATE TABLE lake.db.p (id INT) TBLPROPERTIES ('format-version'='3')")
            session.sql("INSERT INTO lake.db.p VALUES (1)")
            session.sql("ALTER TABLE lake.db.p UNSET TBLPROPERTIES ('gc.enabled')")
            session.sql("CALL lake.system.encrypt_table(table => 'db.p', key_id => 'k1')")
            with pytest.raises(RuntimeError, match=r"gc\.enabled was not set before"):
                session.sql("CALL lake.system.purge_plaintext(table => 'db.p')")
            session.sql("CALL lake.system.rotate_master_key(table => 'db.`a@main`')")
            session.sql("ALTER TABLE lake.db.b UNSET TBLPROPERTIES ('gc.enabled')")
            for statement in (
                "CALL lake.system.remove_orphan_files(table => 'db.b')",
                "CALL lake.system.expire_snapshots(table => 'db.b')",
                "DROP TABLE lake.db.b PURGE",
            ):
                with pytest.raises(RuntimeError, match="other branches may need its files"):
                    session.sql(statement)
    # Nessie sets properties on load, so a thread that checks what another one loaded reads the file again
    opened = found.pop("met")
    assert opened == 3 or (server["type"] == "nessie" and 3 < opened <= 6)
    assert found == {"ids": [5], "unwraps": 3}
