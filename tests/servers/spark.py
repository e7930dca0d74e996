"""Spark as a server of SQL, each in a process of its own, on 127.0.0.1: Spark Connect, and Thrift, which JDBC uses."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness.jars import SPARK_JARS, build_jars
from harness.programs import free_port, start_spark, wait_until_it_listens

from servers.process import Server

CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def start_connect(conf: Mapping[str, str], folder: Path) -> Server:
    """Starts Spark Connect; its log and configuration are in the folder."""
    port = free_port()
    own = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    environment = {}
    if not list(
        SPARK_JARS.glob("spark-connect_*.jar")
    ):  # before Spark 4.0, which knows no address, either
        (connect,) = build_jars("test-jars", "spark-connect_*.jar")
        own["spark.jars"] = f"{conf['spark.jars']},{connect}"
        environment["LD_PRELOAD"] = str(_loopback(folder.with_suffix(".so")))
    process = _start(CONNECT, {**conf, **own}, folder, port, environment)
    return Server(process, f"sc://127.0.0.1:{port}")


def _loopback(library: Path) -> Path:
    """Compiles what has a server listen on 127.0.0.1 alone."""
    source = Path(__file__).with_name("loopback.c")
    command = ["gcc", "-Wall", "-Werror", "-fPIC", "-shared", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    return library


def start_thrift(conf: Mapping[str, str], folder: Path) -> Server:
    """Starts Spark's Thrift server; its log, configuration and scratch are in the folder.

    The jars are on the class path: sessions begin with a look at spark_catalog, in threads that do not see spark.jars.
    """
    port = free_port()
    own = {
        "spark.driver.extraClassPath": conf["spark.jars"].replace(",", os.pathsep),
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.logging.operation.enabled": "false",
        "spark.hadoop.hive.exec.scratchdir": str(folder / "scratch"),
        "spark.hadoop.hive.exec.local.scratchdir": str(folder / "local-scratch"),
    }
    process = _start(THRIFT, {**conf, **own}, folder, port)
    return Server(process, f"jdbc:hive2://127.0.0.1:{port}")


def _start(
    main: str,
    conf: Mapping[str, str],
    folder: Path,
    port: int,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    folder.mkdir()
    settings = folder / "spark.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in conf.items()))
    log = folder / "log"
    arguments = ["--class", main, "--properties-file", str(settings), "spark-internal"]
    process = start_spark("spark-submit", arguments, log, environment)
    wait_until_it_listens(process, port, log)
    return process
