"""What got worse since a baseline: ratios and counts, never absolute times."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 0.02
"""A ratio that is worse by less than this is not reported, however narrow its interval is."""
COMPARABLE = ("mode", "scale", "cores")


@dataclass(frozen=True)
class Worse:
    """One finding."""

    what: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.what}: {self.before} -> {self.now}"


class NotComparableError(Exception):
    """The runs measured different things."""


def baseline_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Of a result file, what is kept: ratios, calls and waits, and what they were measured on."""
    return {
        "settings": content["settings"],
        "environment": content["environment"],
        "ratios": _ratios(content),
        "kms": _calls(content),
        "waits": _waits(content),
    }


def text_of(baseline: Mapping[str, Any]) -> str:
    """As JSON with a line for each ratio, so that a diff of two baselines says which ones have changed."""
    text = json.dumps(baseline, indent=1) + "\n"
    return re.sub(
        r'\{\s+("median"[^}]*\d)\s+\}', lambda ratio: f"{{{' '.join(ratio[1].split())}}}", text
    )


def compare(content: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[Worse]:
    """What is worse in a result file than in a baseline.

    A ratio is worse if its interval and the baseline's do not overlap, and its median is larger by the tolerance. A
    number of calls to the KMS, or of waits for it, is worse if it is larger. What one of them lacks is not compared;
    see `missing`.

    Raises:
        NotComparableError: the settings differ.
    """
    for name in COMPARABLE:
        mine, its = content["settings"].get(name), baseline["settings"].get(name)
        if mine != its:
            raise NotComparableError(f"{name} is {mine}, the baseline's {its}")
    found = []
    for key, now in _ratios(content).items():
        before = baseline["ratios"].get(key)
        if (
            before
            and now["low"] > before["high"]
            and now["median"] > before["median"] * (1 + TOLERANCE)
        ):
            found.append(Worse(key, _text(before), _text(now)))
    for what, counted, accepted in (
        ("calls to the KMS", _calls(content), baseline["kms"]),
        ("waits for the KMS", _waits(content), baseline["waits"]),
    ):
        for key, number in counted.items():
            if key in accepted and number > accepted[key]:
                found.append(Worse(f"{what}, {key}", str(accepted[key]), str(number)))
    return found


def missing(content: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """What the baseline has and this result lacks: it was not compared."""
    lacking = {*baseline["ratios"], *baseline["kms"]} - {*_ratios(content), *_calls(content)}
    waits = {*baseline["waits"]} - {*_waits(content)}
    return sorted({*lacking, *(f"{key}, waits" for key in waits)})


def _ratios(content: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    found = {}
    for cell in content["cells"]:
        for name, other in (("ratio", "plaintext"), ("stock_ratio", "stock")):
            if cell[name]:
                found[f"{cell['measure']}, {cell['peer']} / {other}"] = cell[name]
    return found


def _calls(content: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for cost in content["kms"]:
        for call in ("wraps", "unwraps"):
            key = f"{cost['step']}, {cost['peer']}, {call}"
            found[key] = max(found.get(key, 0), cost[call])
    return found


def _waits(content: Mapping[str, Any]) -> dict[str, int]:
    """Of the slowest KMS alone: calls that go out together overlap there for sure."""
    slowest = max((cost["latency"] for cost in content["kms"]), default=0)
    return {
        f"{cost['step']}, {cost['peer']}": cost["waits"]
        for cost in content["kms"]
        if cost["latency"] == slowest
    }


def _text(ratio: Mapping[str, float]) -> str:
    return f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})"
