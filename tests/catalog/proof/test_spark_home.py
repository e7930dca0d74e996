"""Iceberg in Spark's own folder of jars, as on EMR and Dataproc, and ours by --jars: in a class loader below it."""

from collections.abc import Iterator

import pytest
from harness.jars import SPARK_JARS, build_jars
from harness.life import live
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


def test_the_jars_are_where_they_should_be(session: OtherSession) -> None:
    class_path = "java_method('java.lang.System', 'getProperty', 'java.class.path')"
    (row,) = session.sql(f"SELECT {class_path} AS path")
    assert "iceberg-spark-runtime" in row["path"]
    assert "iceberg-crypto" not in row["path"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tables_life(session: OtherSession, kind: str) -> None:
    live(session, f"enc_{kind}", f"platform_{kind}")
