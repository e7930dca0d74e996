"""The geometry of the report's pictures, which the templates draw as SVG: along x in percent, to fit any width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pyspark_iceberg_crypto.reports import _words
from pyspark_iceberg_crypto.reports._data import FileCount, SnapshotTotal
from pyspark_iceberg_crypto.reports._text import plural, size, visible

WIDTH = 100.0  # percent
_ORDER = ("good", "bad", "wrong", "open")  # from left to right
LEAST = 1.0


@dataclass(frozen=True)
class Bar:
    """A part of a row: where it is, and what it stands for (a state, as ``_words.Part`` has it)."""

    x: float
    width: float
    kind: str


@dataclass(frozen=True)
class Row:
    """A named row of bars, and what is said beside it."""

    name: str
    parts: list[Bar]
    told: str


@dataclass(frozen=True)
class Bars:
    """Rows of bars. The description says what the picture shows, for readers who cannot see it."""

    title: str
    description: str
    rows: list[Row]
    legend: list[tuple[str, str]]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    told: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Dot:
    """A point of a curve."""

    x: float
    y: float
    told: str


@dataclass(frozen=True)
class Curve:
    """A curve over time: x in percent, y in pixels."""

    title: str
    description: str
    line: str
    under: str
    dots: list[Dot]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    height: int = field(default=220)


@dataclass
class _Sum:
    files: int = 0
    bytes: int = 0


def by_kind(counts: Sequence[FileCount], words: Mapping[str, str] = _words.STATES) -> Bars | None:
    """Draw the state of the bytes of each kind of file that should be encrypted; None: there is no such file."""
    kinds: dict[str, dict[str, _Sum]] = {}
    for part in _words.parts(counts):
        if part.state == "plain":
            continue
        summed = kinds.setdefault(part.count.kind, {}).setdefault(part.state, _Sum())
        summed.files += part.files
        summed.bytes += part.bytes
    if not kinds:
        return None
    rows = [_kind_row(kind, states, words) for kind, states in kinds.items()]
    return _bars("Bytes by kind of file and state", rows, {known: words[known] for known in _ORDER})


def _bars(title: str, rows: list[Row], words: Mapping[str, str]) -> Bars:
    """Put rows together, with a legend of what is in them."""
    kinds = {part.kind for row in rows for part in row.parts}
    legend = [(kind, word) for kind, word in words.items() if kind in kinds]
    return Bars(title, "; ".join(f"{row.name}: {row.told}" for row in rows) + ".", rows, legend)


def _kind_row(kind: str, states: dict[str, _Sum], words: Mapping[str, str]) -> Row:
    files = sum(one.files for one in states.values())
    total = sum(one.bytes for one in states.values())
    # files without bytes are drawn by their number
    shares = {known: one.bytes if total else one.files for known, one in states.items()}
    whole = total or files or 1
    parts, x = [], 0.0
    for known in (known for known in _ORDER if known in shares):
        width = max(WIDTH * shares[known] / whole, LEAST)  # however small, it is seen
        parts.append(Bar(round(min(x, WIDTH - LEAST), 1), round(width, 1), known))
        x += width
    said = ", ".join(
        f"{percent(shares.get(known, 0), whole)} {words[known]}"
        for known in _ORDER
        if known == "good" or known in shares
    )
    if len(states) == 1 and "good" not in states:
        said = words[next(iter(states))]
    told = f"{said}: {size(total)}, {plural(files, 'file')}"
    return Row(visible(kind), parts, told)


def percent(part: int, whole: int) -> str:
    """Say a share so that 100% is said of all, and 0% of none, and of nothing else."""
    if part in (0, whole):
        return "100%" if part else "0%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


def ages(keys: Iterable[Mapping[str, Any]]) -> Bars | None:
    """Draw the ages of key encryption keys; None if the age of no key is known."""
    known = [key for key in keys if key.get("kind") == "kek" and key.get("age_days") is not None]
    if not known:
        return None
    longest = max(*(float(key["age_days"]) for key in known), 1.0)
    rows = []
    for key in known:
        days = float(key["age_days"])
        kind, late = ("open", ", overdue") if key.get("overdue") else ("good", "")
        if key.get("problem"):
            kind = "wrong"
        bar = Bar(0.0, round(max(WIDTH * days / longest, LEAST), 1), kind)
        told = plural(round(days), "day") + late
        rows.append(Row(visible(key["key_id"]), [bar], told))
    words = {"good": "in its time", "open": "overdue", "wrong": "with a problem"}
    return _bars("Age of each key encryption key (KEK)", rows, words)


def history(snapshots: Sequence[SnapshotTotal]) -> Curve | None:
    """Draw how a table grew, snapshot by snapshot; None if fewer than two snapshots show it."""
    told = [(_time(one.timestamp), one.bytes, one) for one in snapshots if one.bytes is not None]
    known = sorted(told, key=lambda one: one[0])
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return None
    first, last = known[0][0], known[-1][0]
    top = _round_up(max(total for _, total, _ in known))

    def x(time: float) -> float:
        return round(WIDTH * (time - first) / (last - first), 1)

    def y(total: float) -> float:
        return round(182 - 166 * total / top, 1)

    dots = [
        Dot(x(time), y(total), f"{visible(one.timestamp)}: {size(total)}" + _files(one))
        for time, total, one in known
    ]
    steps = f"M{dots[0].x} {dots[0].y}" + "".join(f"H{dot.x}V{dot.y}" for dot in dots[1:])
    day = last - first > 2 * 86400
    times = [first, (first + last) / 2, last]
    ticks = [
        Tick(x(time), _said(time, day), anchor)
        for time, anchor in zip(times, ("start", "middle", "end"), strict=True)
    ]
    return Curve(
        "Bytes of the table's data after each snapshot",
        f"{plural(len(known), 'snapshot')} from {visible(known[0][2].timestamp)} to "
        f"{visible(known[-1][2].timestamp)}: from {size(known[0][1])} to {size(known[-1][1])}.",
        steps,
        f"{steps}V182H0Z",
        dots if len(dots) <= 100 else [],
        ticks,
        [Tick(y(top * part), size(round(top * part))) for part in (0, 0.5, 1)],
    )


def _files(one: SnapshotTotal) -> str:
    return "" if one.files is None else f" in {plural(one.files, 'file')}"


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _said(time: float, day: bool) -> str:
    moment = datetime.fromtimestamp(time, timezone.utc)
    return moment.strftime("%Y-%m-%d" if day else "%Y-%m-%d %H:%M:%S")


def _round_up(value: int) -> float:
    """Round up to a number that is easy to read, and so is its half."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(float(step * power) for step in (1, 2, 3, 4, 6, 8, 10) if step * power >= value)
