"""Iceberg in Spark's own folder of jars, as on EMR and Dataproc, and ours by --jars: in a class loader below it."""

from collections.abc import Iterator

import pytest
from harness.jars import SPARK_JARS, build_jars
from harness.sessions import OtherSession
from harness.world import KINDS, World, create_lock_tables

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def session(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherSession]:
    folder = tmp_path_factory.mktemp("platform")
    home = folder / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "bin").symlink_to(SPARK_JARS.parent / "bin")
    for jar in [*SPARK_JARS.glob("*.jar"), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]:
        (home / "jars" / jar.name).symlink_to(jar)
    conf = {**world.session_conf(folder / "metastore"), "spark.jars": str(world.jar)}
    with OtherSession(conf, {"SPARK_HOME": str(home)}) as other:
        other.do(create_lock_tables)
        yield other


@pytest.mark.parametrize("kind", KINDS)
def test_a_tables_life(session: OtherSession, kind: str) -> None:
    catalog, name = f"enc_{kind}", f"platform_{kind}.t"
    table = f"{catalog}.{name}"
    where_jars_are = session.sql(
        "SELECT java_method('java.lang.System', 'getProperty', 'java.class.path') AS path"
    )
    assert "iceberg-spark-runtime" in where_jars_are[0]["path"]
    assert "iceberg-crypto" not in where_jars_are[0]["path"]
    session.sql(f"CREATE NAMESPACE {catalog}.platform_{kind}")
    session.sql(
        f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"
    )
    for i in range(3):
        session.sql(f"INSERT INTO {table} VALUES ({i}), ({i + 10})")
    session.sql(f"DELETE FROM {table} WHERE id = 10")
    session.sql(
        f"MERGE INTO {table} t USING (SELECT 11 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    for call in (
        f"rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        f"rotate_master_key(table => '{name}', new_key_id => 'k2')",
        f"expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01 00:00:00')",
    ):
        session.sql(f"CALL {catalog}.system.{call}")
    assert sorted(row["id"] for row in session.sql(f"SELECT id FROM {table}")) == [0, 1, 2, 12]
    assert session.verify(table, depth="deep")["ok"]
    session.sql(f"DROP TABLE {table} PURGE")
