"""Spark's metrics system has our counters, on the driver and on the executors of a cluster."""

import csv
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles.served import Served, Silent
from harness.jars import ROOT
from harness.lake import Lake
from harness.sessions import OtherSession, web_ui
from harness.world import World
from pyspark.sql import SparkSession
from servers.cluster import session_on_cluster
from servers.prometheus import Prometheus
from servers.prometheus import prometheus as prometheus_server

from pyspark_iceberg_crypto import encryption_keys, verify_table

pytestmark = pytest.mark.nightly

PLUGIN = "io.icebergcrypto.spark.MetricsPlugin"
PREFIX = f"plugin.{PLUGIN}."


@pytest.fixture(scope="module")
def table(spark: SparkSession, world: World) -> str:
    lake = Lake(spark, world, "hadoop", "enc_hadoop")
    return lake.insert(lake.create(), [1, 2])


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sink")


@pytest.fixture(scope="module")
def cluster(
    table: str, world: World, sink: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OtherSession]:
    more = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.plugins": PLUGIN,
        "spark.metrics.namespace": "lake",
        "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
        "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
        "spark.metrics.conf.executor.sink.csv.class": "org.apache.spark.metrics.sink.CsvSink",
        "spark.metrics.conf.executor.sink.csv.directory": str(sink),
        "spark.metrics.conf.executor.sink.csv.period": "1",
    }
    with session_on_cluster(world, tmp_path_factory.mktemp("cluster"), more) as session:
        yield session


def prometheus(cluster: OtherSession) -> dict[str, float]:
    """The driver's metrics, by the names that a Prometheus server gets."""
    address = cluster.do(web_ui)
    with urllib.request.urlopen(f"{address}/metrics/prometheus/") as answer:
        text = answer.read().decode()
    return {
        name: float(value)
        for name, value in re.findall(
            r"^(\w+MetricsPlugin\w+_Value)\{[^}]*\} (\S+)$", text, re.MULTILINE
        )
    }


def test_the_driver_by_prometheus(cluster: OtherSession, table: str) -> None:
    name = "metrics_lake_driver_plugin_io_icebergcrypto_spark_MetricsPlugin_{}_Value"
    before = prometheus(cluster)
    cluster.sql(f"SELECT * FROM {table}")
    now = prometheus(cluster)
    assert now[name.format("kms_unwrap_calls")] == before[name.format("kms_unwrap_calls")] + 1
    cluster.sql(f"INSERT INTO {table} VALUES (3, 'x', 'p')")
    then = prometheus(cluster)
    assert then[name.format("files_encrypted")] > now[name.format("files_encrypted")]
    assert then[name.format("files_stream_bytes_encrypted")] > 0
    assert len(then) == 14


MONITORING = ROOT / "examples" / "monitoring"


class _Scrape(Silent):
    def do_GET(self) -> None:  # noqa: N802 (http.server's name)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.double.text.encode())


class Collector(Served):
    """Serves metrics, as node_exporter does what its textfile collector reads."""

    handler = _Scrape

    def __init__(self, text: str) -> None:
        self.text = text


def test_prometheus_answers_the_dashboard(
    cluster: OtherSession, table: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A real one, with the example's configuration and alerts; of a report, and of a driver that works."""
    keys = encryption_keys(spark, table).keys
    with verify_table(spark, table) as report:
        (tmp_path / "report.json").write_text(report.with_keys(keys).to_json())
    script = [sys.executable, MONITORING / "report_metrics.py", "report.json", "out.prom"]
    subprocess.run(script, cwd=tmp_path, check=True)
    (tmp_path / "alerts.yml").write_text((MONITORING / "alerts.yml").read_text())
    collector = Collector((tmp_path / "out.prom").read_text()).start()
    text = (MONITORING / "prometheus.yml").read_text()
    for old, new in (("localhost:4040", cluster.do(web_ui)), ("localhost:9100", collector.url)):
        assert old in text
        text = text.replace(old, new.removeprefix("http://"))
    config = tmp_path / "prometheus.yml"
    config.write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{text}")
    with prometheus_server(config, tmp_path) as server:
        for _ in range(2):
            cluster.sql(f"SELECT * FROM {table}")
            cluster.sql(f"INSERT INTO {table} VALUES (4, 'x', 'p')")
            time.sleep(2)  # two scrapes
        answer_the_dashboard(server)
        (found,) = server.query("iceberg_crypto_files_encrypted")
        assert float(found["value"][1]) > 0
        (group,) = server.get("rules")["groups"]
        assert {rule["health"] for rule in group["rules"]} == {"ok"}
        assert [rule["name"] for rule in group["rules"] if rule["alerts"]] == []


def answer_the_dashboard(server: Prometheus) -> None:
    """Each query, but for the one that asks for trouble, has an answer."""
    for panel in json.loads((MONITORING / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$application", "lake")
            answered = server.query(query)
            assert bool(answered) == ("unknown_keks" not in query), query
            if query != target["expr"]:
                assert {one["metric"]["application"] for one in answered} == {"lake"}


@pytest.mark.parametrize("counter", ["decrypted", "parquet_bytes_opened", "bytes_written"])
def test_executors_by_a_sink(cluster: OtherSession, table: str, sink: Path, counter: str) -> None:
    cluster.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 1")
    name = f"{PREFIX}files.{counter}.csv"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        values = [last(path) for path in sink.glob(f"lake.*.{name}")]
        if sum(values) > 0:
            return
        time.sleep(0.5)
    pytest.fail(f"no executor counts: {sorted(path.name for path in sink.iterdir())}")


def newest_stage(cluster: OtherSession) -> tuple[dict[str, Any], Counter[str]]:
    """What the UI shows of it, by its REST API; and what its tasks have added to accumulators, by name."""

    def get(path: str) -> Any:
        with urllib.request.urlopen(f"{applications}{path}") as answer:
            return json.load(answer)

    applications = f"{cluster.do(web_ui)}/api/v1/applications"
    stages = f"/{get('')[0]['id']}/stages"
    stage = max(get(stages), key=lambda one: int(one["stageId"]))
    added: Counter[str] = Counter()
    for task in get(f"{stages}/{stage['stageId']}/{stage['attemptId']}/taskList"):
        added.update({one["name"]: int(one["update"]) for one in task["accumulatorUpdates"]})
    return stage, added


def test_tasks_on_the_page_of_their_stage(cluster: OtherSession, table: str) -> None:
    cluster.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id = 1")
    stage, added = newest_stage(cluster)
    assert added["encrypted files read"] >= 1
    assert added["encrypted files written"] >= 1
    assert added["bytes of encrypted files written"] == stage["outputBytes"] > 0
    assert {one["name"] for one in stage["accumulatorUpdates"]} >= set(added)
    cluster.sql("SELECT sum(id) AS s FROM range(10)")
    stage, added = newest_stage(cluster)
    assert stage["accumulatorUpdates"] == [] and not added


def last(path: Path) -> float:
    """The newest value; 0 while the file is being made."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return float(rows[-1]["value"]) if rows else 0.0
