"""A jar of ours that is for another Spark, or a second one: the first use of the catalog says so."""

from pathlib import Path

import pytest
from harness.classes import SPARK_CATALOG
from harness.jars import BUILD, BUILT, build_jars, our_jar
from harness.sessions import OtherSession
from harness.world import World, catalog_conf

from pyspark_iceberg_crypto.jvm.artifacts import BUILDS, VERSION, Build

pytestmark = pytest.mark.skipif(
    BUILT is BUILDS[0], reason="for `make matrix`, which builds jars for several Sparks"
)


# The newest Spark's, and this Spark's for another Scala.
OTHERS = [b for b in BUILDS if b is not BUILT and (b is BUILDS[0] or b.spark == BUILT.spark)]


@pytest.mark.parametrize("other", OTHERS, ids=[build.artifact for build in OTHERS])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside the right one"])
def test_the_jar_of_another_spark(world: World, tmp_path: Path, other: Build, beside: bool) -> None:
    conf = world.session_conf(tmp_path / "metastore")
    jar = BUILD / other.artifact / "libs" / f"{other.artifact}-{VERSION}.jar"
    ours = [jar, *([our_jar()] * beside)]
    iceberg = build_jars("test-jars", "iceberg-spark-runtime-*.jar")
    conf["spark.jars"] = ",".join(map(str, [*ours, *iceberg]))
    conf |= catalog_conf("fresh", SPARK_CATALOG, world.ours("hadoop"))
    expected = (
        "There are 2 builds of iceberg-crypto"
        if beside
        else f"{other.artifact} is for Spark {other.spark} with Scala {other.scala},"
        f" and this is Spark {BUILT.spark}"
    )
    with (
        pytest.raises(RuntimeError, match="InvalidConfigurationException") as caught,
        OtherSession(conf) as session,
    ):
        session.sql("SHOW NAMESPACES IN fresh")
    assert expected in str(caught.value)
    assert BUILT.artifact in str(caught.value) or f"for Spark {BUILT.spark}" in str(caught.value)
