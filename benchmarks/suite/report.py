"""Results as Markdown tables: for the terminal, docs/benchmarks.md (a summary) and docs/benchmarks-tables.md."""

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from suite.kms_cost import targets
from suite.results import MET, MISSED, Cell, Results
from suite.stats import Spread

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def summary(results: Results) -> str:
    """What fits on one screen: the targets on Hive, how many are met on all catalogs, and what was missed."""
    parts = [about(results)]
    cells = results.cells()
    aimed = with_target(cells)
    if aimed:
        parts.append(target_table([cell for cell in aimed if cell.peer == "hive"]))
        parts.append(f"On all catalogs: {counted([cell.verdict for cell in aimed])}.")
    if any(cell.stock_ratio for cell in cells):
        parts.append(stock_text(cells))
    found = targets(slowest(results)) if results.kms else []
    if found:
        parts.append(f"Calls to the KMS: {counted([verdict for *_, verdict in found])}.")
        parts += [f"- {strong(MISSED)}: {what} ({n})" for what, n, word in found if word == MISSED]
    return "\n\n".join(parts) + "\n"


def report(results: Results) -> str:
    """Everything, under headings."""
    parts = [about(results)]
    cells = results.cells()
    aimed = with_target(cells)
    if aimed:
        parts += ["### Targets", target_table(aimed)]
    if any(cell.stock_ratio for cell in cells):
        parts += ["### Against stock Iceberg's encryption", stock_text(cells)]
    parts += ["### All measures", measures_table(cells)]
    if results.kms:
        parts += ["### Calls to the KMS", kms_text(results)]
    if results.failures:
        parts += ["### Not measured", failures(results)]
    return "\n\n".join(parts) + "\n"


def with_target(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.target and "TPC-H Q" not in cell.measure]


def counted(verdicts: Sequence[str]) -> str:
    """How many of some targets have which verdict, such as: of 3 targets, 1 MISSED, 2 met."""
    each = Counter(verdicts)
    return f"of {len(verdicts)} targets, " + ", ".join(
        f"{each[word]} {word}" for word in sorted(each)
    )


def about(results: Results) -> str:
    found, settings = results.environment, results.settings
    changed = " with changes" if found["changed"] else ""
    return (
        f"Measured {found['date']} at commit {found['commit'][:12]}{changed}: {settings['mode']} mode, TPC-H at scale"
        f" {settings['scale']}, {settings['rounds']} rounds, seed {settings['seed']}. Spark {found['spark']}, Iceberg"
        f" {found['iceberg']}, {found['java']}, Python {found['python']}, {found['system']}, {found['cpu']}"
        f" ({found['cpus']} CPUs, of which Spark used {found['cores']}, driver memory {found['driver_memory']}); load"
        f" average at the start {found['load']}."
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Numbers stand on the right: in all columns but the first two."""
    lines = [" | ".join(head), " | ".join("---" if i < 2 else "--:" for i in range(len(head)))]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def target_table(cells: Sequence[Cell]) -> str:
    head = ("measure", "peer", "encrypted / plaintext", "target", "verdict")
    rows = [
        (cell.measure, cell.peer, spread(cell.ratio), f"{cell.target:.2f}", strong(cell.verdict))
        for cell in cells
    ]
    return table(head, rows)


def stock_text(cells: Sequence[Cell]) -> str:
    missed = [cell for cell in cells if cell.stock_verdict == MISSED]
    compared = [cell for cell in cells if cell.stock_verdict in (MET, MISSED)]
    text = (
        f"This project on Hive is slower than stock in {len(missed)} of {len(compared)} measures (the whole interval of"
        " the ratio is above 1)."
    )
    if not missed:
        return text
    rows = [(cell.measure, cell.peer, spread(cell.stock_ratio), strong(MISSED)) for cell in missed]
    return f"{text}\n\n" + table(("measure", "peer", "ours / stock", "verdict"), rows)


def measures_table(cells: Sequence[Cell]) -> str:
    head = ("measure", "peer", "median (quartiles)", "rows/s", "/ plaintext", "/ stock")
    rows = [
        (
            cell.measure,
            cell.peer,
            f"{spread(cell.value)} {cell.unit}",
            f"{cell.rows_per_second:,.0f}" if cell.rows_per_second else "",
            spread(cell.ratio),
            spread(cell.stock_ratio),
        )
        for cell in cells
    ]
    return table(head, rows)


def kms_text(results: Results) -> str:
    lines = [(line, verdict) for *line, verdict in targets(slowest(results))]
    verdicts = table(
        ("target", "found", "verdict"),
        [(what, found, strong(verdict)) for (what, found), verdict in lines],
    )
    latencies = sorted({cost["latency"] for cost in results.kms})
    head = (
        "operation", "peer", "wraps", "unwraps", "waits", *[f"s at {one} ms" for one in latencies],
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for cost in slowest(results):
        same = [c for c in results.kms if (c["peer"], c["step"]) == (cost["peer"], cost["step"])]
        calls = [str(max(one[call] for one in same)) for call in ("wraps", "unwraps", "waits")]
        seconds = [
            f"{statistics.median(one['seconds']):.2f}"
            for one in sorted(same, key=lambda one: int(one["latency"]))
        ]
        rows.append((cost["step"], cost["peer"], *calls, *seconds))
    order = list(dict.fromkeys(row[0] for row in rows))
    rows.sort(key=lambda row: order.index(row[0]))
    return f"{verdicts}\n\n{table(head, rows)}"


def slowest(results: Results) -> list[dict[str, Any]]:
    """Waits are told apart best with the slowest KMS."""
    latency = max(cost["latency"] for cost in results.kms)
    return [cost for cost in results.kms if cost["latency"] == latency]


def failures(results: Results) -> str:
    rows = [(one["measure"], one["peer"], one["why"].replace("|", "/")) for one in results.failures]
    return table(("measure", "peer", "why"), rows)


def spread(found: Spread | None) -> str:
    if found is None:
        return ""
    digits = max(0, 3 - len(str(int(found.median)))) if found.median >= 1 else 3
    return found.text(max(digits, 2) if found.median < 10 else digits)


def strong(verdict: str) -> str:
    return f"**{verdict}**" if verdict == MISSED else verdict


def write_docs(path: Path, text: str) -> None:
    """Replaces what stands between the markers."""
    page = path.read_text()
    found = re.subn(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{text}\n{END}",
        page,
        flags=re.DOTALL,
    )
    if found[1] != 1:
        raise SystemExit(f"{path} has no {BEGIN} ... {END}")
    path.write_text(found[0])
