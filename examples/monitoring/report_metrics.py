r"""Write the report of a verification as metrics for Prometheus, for a job that runs every night.

    iceberg-crypto verify lake --all-snapshots --json-file report.json
    python examples/monitoring/report_metrics.py report.json /var/lib/node_exporter/iceberg_crypto.prom

Prometheus's node_exporter reads the file with its textfile collector; alerts.yml has alerts on it. Needs no Spark, and
no key.
"""

import calendar
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Give the metrics of a report on one table or on several."""
    tables = report.get("reports", [report])
    name = json.dumps(report.get("target", report.get("table")), ensure_ascii=False)
    target = f"target={name}"
    ended = [one["ended_at"][:19] for one in tables if one["ended_at"]]
    if ended:
        when = calendar.timegm(time.strptime(max(ended), "%Y-%m-%dT%H:%M:%S"))
        told = "When the last verification ended."
        yield from gauge("verification_timestamp_seconds", told, {target: when})

    results = Counter({"encrypted": 0, "problem": 0, "unchecked": 0, "left out": 0})
    results.update(map(result, tables))
    results["unchecked"] += len(report.get("not_checked", ()))
    results["left out"] += len(report.get("left_out", ()))
    told = "Tables by the result of their verification."
    yield from gauge("tables", told, {f'{target},result="{r}"': n for r, n in results.items()})

    told = "Encrypted tables whose plaintext from before encrypt_table was not purged."
    left = [one for one in tables if one["plaintext_metadata"] is not None]
    yield from gauge("plaintext_tables", told, {target: len(left)})

    told = "KEKs that are older than encryption.kek.max-age-days."
    keks = [key for one in tables for key in one["encryption_keys"] if key["kind"] == "kek"]
    yield from gauge("overdue_keks", told, {target: sum(key["overdue"] for key in keks)})

    told = "Encrypted tables whose KEKs could not be listed."
    unknown = [one for one in tables if one["key_id"] is not None and not one["encryption_keys"]]
    yield from gauge("unknown_keks_tables", told, {target: len(unknown)})


def gauge(name: str, told: str, samples: dict[str, int]) -> Iterator[str]:
    """Give a metric: what it means, and its values by their labels."""
    yield f"# HELP iceberg_crypto_{name} {told}"
    yield f"# TYPE iceberg_crypto_{name} gauge"
    for labels, value in samples.items():
        yield f"iceberg_crypto_{name}{{{labels}}} {value}"


def result(table: dict[str, Any]) -> str:
    """Say what the verification of a table came to."""
    if table["ok"]:
        return "encrypted"
    return "unchecked" if table["unchecked_count"] and not table["problem_count"] else "problem"


def main(source: str, target: str) -> None:
    """Write the metrics, all at once: the collector may read at any time."""
    report = json.loads(Path(source).read_text(encoding="utf-8"))
    unfinished = Path(f"{target}.new")
    unfinished.write_text("".join(f"{line}\n" for line in lines(report)), encoding="utf-8")
    unfinished.replace(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
