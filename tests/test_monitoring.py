"""The files of examples/monitoring: their names are those that code exports, and the alerts do what they say.

`catalog/proof/test_metrics.py` has a real Prometheus scrape a real Spark with them.
"""

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.in_process import evidence_json, verify_json
from servers.prometheus import programs

from pyspark_iceberg_crypto import VerifyReport, VerifyTablesReport

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "monitoring"
PREFIX = "iceberg_crypto_"


def exported_by_spark() -> set[str]:
    """The names in MetricsPlugin's registry, as Spark's Prometheus servlet writes them."""
    groups = {"kms": "kms/call/KmsMetrics", "files": "io/stream/FileMetrics"}
    found = set()
    for group, path in groups.items():
        text = (ROOT / f"jvm/core/src/main/java/io/icebergcrypto/{path}.java").read_text()
        names = map("".join, re.findall(r'(?m)counters\.put\("(\w+)"|^    ([A-Z_]+)\(', text))
        found |= {f"{group}_{name.lower()}" for name in names}
    plugin = "plugin_io_icebergcrypto_spark_MetricsPlugin"
    return {f"metrics_lake_driver_{plugin}_{name}_Value" for name in found}


def renamed(name: str) -> dict[str, str]:
    """A metric's labels, its name included, after the rules of prometheus.yml."""
    labels = {"__name__": name}
    (spark, _) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    for rule in spark["metric_relabel_configs"]:
        (source,) = rule["source_labels"]
        if found := re.fullmatch(rule["regex"], labels[source]):
            value = re.sub(r"\$(\d)", r"\\\1", rule.get("replacement", "$1"))
            labels[rule["target_label"]] = found.expand(value)
    return labels


def report_metrics(report: dict[str, Any]) -> str:
    file = FOLDER / "report_metrics.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return "".join(f"{line}\n" for line in module.lines(report))


def samples(report: dict[str, Any]) -> dict[str, float]:
    found = re.findall(r"^(\w+\{.*\}) (\d+)$", report_metrics(report), re.MULTILINE)
    return {name.removeprefix(PREFIX): float(value) for name, value in found}


def exported() -> set[str]:
    spark = {renamed(name)["__name__"] for name in exported_by_spark()}
    report = VerifyReport.of(evidence_json()).to_dict()
    return spark | set(re.findall(rf"^({PREFIX}\w+)\{{", report_metrics(report), re.MULTILINE))


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    return found


def queries() -> Iterator[str]:
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])


def test_spark_s_metrics_get_plain_names() -> None:
    names = exported_by_spark()
    assert len(names) == 14
    for name in names:
        short = name.partition("MetricsPlugin_")[2].removesuffix("_Value")
        assert renamed(name) == {"__name__": PREFIX + short, "application": "lake"}
    other = "metrics_lake_driver_BlockManager_memory_memUsed_MB_Value"
    assert renamed(other) == {"__name__": other}


def test_every_name_is_one_that_is_exported() -> None:
    known = exported()
    alerts = (FOLDER / "alerts.yml").read_text()
    asked = "\n".join([*queries(), *re.findall(r"expr:.*?labels:", alerts, re.DOTALL)])
    assert set(re.findall(rf"{PREFIX}\w+", asked)) <= known
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert set(re.findall(rf"{PREFIX}\w+", page)) <= known
    listed = {name.replace(".", "_") for name in re.findall(r"`((?:kms|files)\.\w+)`", page)}
    listed |= set(re.findall(rf"^\| `{PREFIX}(\w+)", page, re.MULTILINE))
    assert {PREFIX + name for name in listed} == known


def test_each_alert_is_documented_and_says_what_to_do() -> None:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    page = (ROOT / "docs" / "metrics.md").read_text()
    names = [rule["alert"] for rule in group["rules"]]
    assert re.findall(r"^\| `(IcebergCrypto\w+)` \|", page, re.MULTILINE) == names
    for rule in group["rules"]:
        assert rule["annotations"]["description"].endswith((".", "KEY_ID"))


def test_panels_say_what_they_show_and_in_which_unit() -> None:
    taken = set()
    for panel in panels():
        assert panel["title"] and panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["w"]) for y in range(at["h"])}
        cells = {(at["x"] + x, at["y"] + y) for x, y in cells}
        assert not cells & taken and max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels()) == 12


def test_the_metrics_of_reports() -> None:
    well = VerifyReport.of(verify_json(ended_at="2026-01-02T00:00:01.5Z"))
    bad = VerifyReport.of(
        {
            **evidence_json(ended_at="2026-01-01T00:00:00Z", plaintext_metadata="s3://b/m"),
            "encryption_keys": [
                {"kind": "kek", "overdue": True},
                {"kind": "kek", "overdue": False},
                {"kind": "master", "overdue": False},
            ],
        }
    )
    left = [{"table": "lake.u", "problem": "denied", "hint": ""}]
    out = [{"table": "lake.v", "encrypted": False}]
    found = samples(VerifyTablesReport("lake", [well, bad], left, [], out).to_dict())
    assert found == {
        'verification_timestamp_seconds{target="lake"}': 1767312001,
        'tables{target="lake",result="encrypted"}': 1,
        'tables{target="lake",result="problem"}': 1,
        'tables{target="lake",result="unchecked"}': 1,
        'tables{target="lake",result="left out"}': 1,
        'plaintext_tables{target="lake"}': 1,
        'overdue_keks{target="lake"}': 1,
        'unknown_keks_tables{target="lake"}': 1,
    }
    one = samples(well.to_dict())
    assert one['tables{target="lake.db.t",result="encrypted"}'] == 1
    nothing = samples(VerifyTablesReport("lake", [], [], []).to_dict())
    assert not [name for name in nothing if name.startswith("verification_timestamp")]


def test_the_file_for_the_collector_is_replaced_as_a_whole(tmp_path: Path) -> None:
    report = VerifyReport.of(verify_json(ended_at="2026-01-02T00:00:01Z"))
    (tmp_path / "report.json").write_text(report.to_json())
    command = ["python3", FOLDER / "report_metrics.py", "report.json", "out.prom"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "out.prom").read_text() == report_metrics(report.to_dict())
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "out.prom"}


# What promtool plays: series, and which alerts they raise at which time. By name: without labels, as they differ.
PLAYED = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'iceberg_crypto_kms_errors{{application="lake"}}', values: '0x20 2x40'}}
      - {{series: 'iceberg_crypto_kms_errors{{application="begun"}}', values: '_x30 5x30'}}
      - {{series: 'iceberg_crypto_verification_timestamp_seconds{{target="lake"}}', values: '0x4000'}}
      - {{series: 'iceberg_crypto_tables{{target="lake",result="problem"}}', values: '0x99 1x9'}}
      - {{series: 'iceberg_crypto_plaintext_tables{{target="lake"}}', values: '0x9 1x4000'}}
      - {{series: 'iceberg_crypto_overdue_keks{{target="lake"}}', values: '0x9 3x4000'}}
      - {{series: 'iceberg_crypto_unknown_keks_tables{{target="lake"}}', values: '0x4000'}}
    promql_expr_test:
{expected}
  - interval: 1m
    promql_expr_test:
      - expr: count(ALERTS{{alertname="IcebergCryptoVerificationOverdue", alertstate="firing"}})
        eval_time: 62m
        exp_samples: [{{labels: '{{}}', value: 1}}]
"""
FIRING = [
    ("IcebergCryptoKmsErrors", "19m", 0),
    ("IcebergCryptoKmsErrors", "22m", 1),
    ("IcebergCryptoKmsErrors", "32m", 2),
    ("IcebergCryptoKmsErrors", "50m", 0),
    ("IcebergCryptoVerificationOverdue", "47h", 0),
    ("IcebergCryptoVerificationOverdue", "49h5m", 1),
    ("IcebergCryptoNotVerified", "99m", 0),
    ("IcebergCryptoNotVerified", "101m", 1),
    ("IcebergCryptoPlaintextNotPurged", "23h", 0),
    ("IcebergCryptoPlaintextNotPurged", "25h", 1),
    ("IcebergCryptoKekOverdue", "23h", 0),
    ("IcebergCryptoKekOverdue", "25h", 1),
]


@pytest.mark.nightly
def test_the_alerts_fire(tmp_path: Path) -> None:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    assert {name for name, _, count in FIRING if count} == {r["alert"] for r in group["rules"]}
    expected = ""
    for name, at, count in FIRING:
        ask = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
        told = f"{{labels: '{{}}', value: {count}}}" if count else ""
        expected += f"      - {{expr: '{ask}', eval_time: {at}, exp_samples: [{told}]}}\n"
    played = tmp_path / "played.yml"
    played.write_text(PLAYED.format(rules=FOLDER / "alerts.yml", expected=expected))
    for command in (
        ["check", "config", str(FOLDER / "prometheus.yml")],
        ["test", "rules", str(played)],
    ):
        done = subprocess.run([programs() / "promtool", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_the_dashboard_is_one_by_grafana_s_schema() -> None:
    """What the types of Grafana do not know is lost when a dashboard goes through them."""
    pytest.importorskip("grafana_foundation_sdk", reason="it needs Python 3.11")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    for misspelt in ("", "legendFormat", "fieldConfig", "gridPos"):
        text = (FOLDER / "grafana.json").read_text()
        text = text.replace(misspelt, f"{misspelt}s") if misspelt else text
        written = json.loads(text)
        read = json.loads(JSONEncoder().encode(Dashboard.from_json(json.loads(text))))
        assert bool(list(lost(written, read))) == bool(misspelt), misspelt


def lost(written: Any, read: Any) -> Iterator[Any]:
    if isinstance(written, dict):
        for name, value in written.items():
            if name in read:
                yield from lost(value, read[name])
            else:
                yield name
    elif isinstance(written, list):
        assert len(written) == len(read)
        for one, other in zip(written, read, strict=True):
            yield from lost(one, other)
    elif written != read:
        yield written
