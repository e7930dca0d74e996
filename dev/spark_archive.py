"""Writes an archive of Spark's classes (Java's class data sharing), so that the tests' Spark starts in half the time.

Usage: dev/spark_archive.py FILE. Java leaves the archive aside where the class path or the JDK is another one.
"""

import sys
import tempfile

from pyspark.sql import SparkSession

STATEMENTS = (
    "CREATE TABLE t (id INT, name STRING) USING parquet",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    "SELECT u.name, count(*) FROM t JOIN t u USING (id) GROUP BY 1 ORDER BY 1",
)

archive = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    options = (
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        f"-XX:ArchiveClassesAtExit={archive}",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        f"-Dderby.system.home={folder}",
    )
    conf = {
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.driver.host": "127.0.0.1",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:archive;create=true",
        "spark.master": "local[2]",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for statement in STATEMENTS:
        spark.sql(statement).collect()
    gateway = spark.sparkContext._gateway
    spark.stop()
    # The JVM writes the archive when it ends, which it does when this pipe breaks.
    gateway.shutdown()
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())
