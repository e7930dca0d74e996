"""Spark as a server of SQL, each in a process of its own, on 127.0.0.1: Spark Connect, and Thrift, which JDBC uses."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.jars import SPARK_JARS, build_jars
from harness.programs import free_port, start_spark, wait_for_end, wait_until_it_listens

CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass
class SparkServer:
    """A running server. `stop` ends this process and no other."""

    process: "subprocess.Popen[Any]"
    url: str

    def stop(self) -> None:
        self.process.terminate()
        wait_for_end(self.process)


def start_connect(conf: Mapping[str, str], folder: Path) -> SparkServer:
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
    return SparkServer(process, f"sc://127.0.0.1:{port}")


def _loopback(library: Path) -> Path:
    """Compiles what has a server listen on 127.0.0.1 alone."""
    source = Path(__file__).with_name("loopback.c")
    command = ["gcc", "-Wall", "-Werror", "-fPIC", "-shared", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    return library


def start_thrift(conf: Mapping[str, str], folder: Path) -> SparkServer:
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
    return SparkServer(
        _start(THRIFT, {**conf, **own}, folder, port), f"jdbc:hive2://127.0.0.1:{port}"
    )


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
