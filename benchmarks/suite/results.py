"""What was measured, as data: written after each measure, and read again to go on, to compare, to draw."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from suite.stats import Spread, quartiles, ratio

OURS = ("hive", "rest", "jdbc", "hadoop")
STOCK = "stock"
PER_UNIT = {"s": 1.0, "ms": 1000.0, "MB": 1.0}
"""Values are kept in seconds or megabytes."""
MET, MISSED, TOO_FEW = "met", "MISSED", "too few rounds"
BOUNDED = 5
"""Rounds from which on a ratio has bounds."""


@dataclass(frozen=True)
class Cell:
    """One peer's line of a measure.

    Attributes:
        value: median and quartiles, in the measure's unit.
        ratio: to the peer's plaintext, round by round; None for plaintext, or where that was not measured.
        stock_ratio: to stock Iceberg's encryption.
        verdict: of the target: met by the whole interval, MISSED, too few rounds; empty without a target.
        stock_verdict: MISSED if it is slower than stock, beyond the bounds.
    """

    measure: str
    group: str
    unit: str
    peer: str
    against: str | None
    value: Spread
    rounds: int
    ratio: Spread | None = None
    target: float | None = None
    verdict: str = ""
    stock_ratio: Spread | None = None
    stock_verdict: str = ""
    rows_per_second: float | None = None


@dataclass
class Measured:
    """The values of one measure: for each peer, one for each round."""

    name: str
    group: str
    unit: str
    target: float | None = None
    total: str | None = None
    rows: int | None = None
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, peer: str, value: float) -> None:
        self.values.setdefault(peer, []).append(value)

    def cells(self, against: Mapping[str, str | None]) -> Iterator[Cell]:
        """A cell for each peer.

        Args:
            against: the peer with which each is compared.
        """
        scale = PER_UNIT[self.unit]
        for peer in [name for name in against if name in self.values]:
            values, other = self.values[peer], against[peer]
            to_plain = self._ratio(peer, other)
            to_stock = self._ratio(peer, STOCK) if peer == "hive" else None
            target = self.target if peer in OURS and to_plain else None
            yield Cell(
                self.name,
                self.group,
                self.unit,
                peer,
                other if to_plain else None,
                quartiles([scale * value for value in values]),
                len(values),
                to_plain,
                target,
                verdict(to_plain.high <= target, len(values)) if target and to_plain else "",
                to_stock,
                verdict(to_stock.low <= 1, len(values)) if to_stock else "",
                self.rows / quartiles(values).median if self.rows else None,
            )

    def _ratio(self, peer: str, other: str | None) -> Spread | None:
        mine, its = self.values[peer], self.values.get(other or "")
        return ratio(mine, its) if its and len(its) == len(mine) else None

    def line(self, against: Mapping[str, str | None]) -> str:
        """For the terminal, while it runs."""
        parts = [
            f"{cell.peer} {cell.value.median:.3g}"
            + (f" x{cell.ratio.median:.3f}" if cell.ratio else "")
            for cell in self.cells(against)
        ]
        return f"{self.name} [{self.unit}]: {', '.join(parts)}"


def verdict(good: bool, rounds: int = BOUNDED) -> str:
    """In words."""
    if rounds < BOUNDED:
        return TOO_FEW
    return MET if good else MISSED


@dataclass
class Results:
    """Of a run.

    Attributes:
        settings: what another run must share for its ratios to be comparable.
        environment: what it ran on.
        against: each peer, and the one that it is compared with.
        kms: lines of KmsCost.
        failures: what was not measured, and why.
    """

    settings: dict[str, Any]
    environment: dict[str, Any]
    against: dict[str, str | None]
    about: dict[str, str]
    measured: list[Measured] = field(default_factory=list)
    kms: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return any(one.name == name for one in self.measured)

    def fail(self, measure: str, peer: str, why: str) -> None:
        self.failures.append({"measure": measure, "peer": peer, "why": why})
        print(f"  {measure}{', ' + peer if peer else ''}: {why}", flush=True)

    def every(self) -> list[Measured]:
        """What was measured, and the totals of it."""
        sums: dict[str, list[Measured]] = {}
        for one in self.measured:
            if one.total:
                sums.setdefault(one.total, []).append(one)
        return self.measured + [added_up(name, parts) for name, parts in sums.items()]

    def cells(self) -> list[Cell]:
        return [cell for one in self.every() for cell in one.cells(self.against)]

    def write(self, path: Path) -> None:
        """In one piece: a reader, or a run that ends here, finds this or the one before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = asdict(self) | {"cells": [asdict(cell) for cell in self.cells()]}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(content, indent=1) + "\n")
        part.replace(path)


def read(path: Path) -> Results:
    content = json.loads(path.read_text())
    content.pop("cells")
    content["measured"] = [Measured(**one) for one in content["measured"]]
    return Results(**content)


def added_up(name: str, parts: list[Measured]) -> Measured:
    """Round by round; of the peers and rounds that all parts have."""
    first = parts[0]
    peers = [peer for peer in first.values if all(peer in part.values for part in parts)]
    values = {
        peer: [sum(round_) for round_ in zip(*(part.values[peer] for part in parts), strict=False)]
        for peer in peers
    }
    return Measured(name, first.group, first.unit, first.target, values=values)
