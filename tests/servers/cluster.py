"""Spark as a cluster: a driver and two executors, each a JVM of its own."""

from collections.abc import Sequence
from pathlib import Path

from harness.jars import SPARK_JARS, build_jars, our_jar


def spark_home(folder: Path) -> Path:
    """Spark by another path: a local-cluster's executors work and print below their Spark's folder."""
    folder.mkdir()
    for part in SPARK_JARS.parent.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


def cluster_conf(java: Sequence[str] = (), jars: Sequence[Path] = ()) -> dict[str, str]:
    """Spark's configuration, with further options for each JVM and further jars."""
    options = " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *java])
    every = [our_jar(), *build_jars("test-jars", "iceberg-spark*.jar"), *jars]
    return {
        "spark.master": "local-cluster[2,1,768]",
        "spark.executor.memory": "640m",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": str(build_jars("test-jars", "sqlite-jdbc-*.jar")[0]),
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.jars": ",".join(map(str, every)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": "2",
        "spark.iceberg-crypto.verify.files-on-driver": "0",
        "spark.ui.enabled": "false",
    }
