"""One Spark session with every catalog in it, stock Iceberg's and ours, so that a pair runs in one JVM."""

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.classes import IMPLEMENTATIONS, SPARK_CATALOG
from harness.jars import SPARK_JARS, build_jars
from harness.world import (
    KINDS,
    STOCK,
    UNCOMPRESSED,
    World,
    catalog_conf,
    embedded_metastore,
    make_world,
)
from pyspark.sql import SparkSession

JAVA = Path(__file__).parents[1] / "java"
ORC_SERVICE = "META-INF/services/org.apache.orc.impl.KeyProvider$Factory"
SLOW_KMS = "io.icebergcrypto.benchmarks.SlowKms"


@contextmanager
def session(cores: int, memory: str) -> Iterator[tuple[SparkSession, World]]:
    """Spark on so many cores; folders, the REST server and the metastore are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="iceberg-crypto-benchmark-") as name:
        world = make_world(Path(name))
        try:
            builder = SparkSession.builder.appName("benchmarks")
            for key, value in settings(world, cores, memory).items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
            try:
                yield spark, world
            finally:
                spark.stop()
        finally:
            world.rest.stop()


def settings(world: World, cores: int, memory: str) -> dict[str, str]:
    jars = [world.jar, *build_jars("test-jars", "iceberg-spark-runtime-*.jar"), java_jar(world)]
    conf = {
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": memory,
        "spark.log.level": "OFF",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(world.root / "spark-warehouse"),
        "spark.iceberg-crypto.settings-from": "session",  # each application is a session of its own
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": os.pathsep.join(
            map(str, [*build_jars("test-jars", "sqlite-jdbc-*.jar"), world.classes])
        ),
        # Hadoop's own starts a process, chmod, for each file.
        "spark.hadoop.fs.file.impl": world.file_system,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={world.root}",
        **embedded_metastore(world.root / "metastore"),
    }
    for kind in KINDS:
        conf |= catalog_conf(f"plain_{kind}", STOCK, backend(world, kind))
        conf |= catalog_conf(f"enc_{kind}", SPARK_CATALOG, ours(world, kind))
    return conf | catalog_conf("stock_hive", STOCK, stock(world))


def backend(world: World, kind: str) -> dict[str, str]:
    """With the defaults of users: files are compressed."""
    return {key: value for key, value in world.backend(kind).items() if key not in UNCOMPRESSED}


def ours(world: World, kind: str) -> dict[str, str]:
    keystore = {"encryption.kms-type": "keystore", **world.keystore_options()}
    return {**backend(world, kind), **keystore}


def stock(world: World) -> dict[str, str]:
    keystore = {
        "encryption.kms-impl": IMPLEMENTATIONS["keystore"],
        **world.keystore_options(),
    }
    return {**backend(world, "hive"), **keystore}


def with_slow_kms(world: World, kind: str) -> dict[str, str]:
    """A catalog whose KMS is the double that waits and counts."""
    return {**backend(world, kind), "encryption.kms-impl": SLOW_KMS}


def java_jar(world: World) -> Path:
    """What the benchmarks have in Java."""
    classes, jar = world.root / "benchmark-classes", world.root / "benchmarks.jar"
    path = [world.jar, *build_jars("test-jars"), SPARK_JARS / "*"]
    sources = map(str, sorted(JAVA.rglob("*.java")))
    class_path = os.pathsep.join(map(str, path))
    command = ["javac", "-nowarn", "-d", str(classes), "-cp", class_path, *sources]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
        archive.writestr(ORC_SERVICE, "io.icebergcrypto.benchmarks.OrcKeys\n")
    return jar
