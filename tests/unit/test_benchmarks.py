"""What the benchmarks make of their values: medians, verdicts, what got worse. `make bench` runs them themselves."""

import json
import random
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from suite.compare import NotComparableError, baseline_of, compare, missing
from suite.results import MET, MISSED, TOO_FEW, Measured, Results
from suite.stats import quartiles, ratio

CHECK = Path(__file__).parents[2] / "benchmarks" / "check.py"
SETTINGS = {"mode": "quick", "scale": 0.1, "rounds": 9, "cores": 2, "seed": 1}
AGAINST = {"plaintext": None, "stock": "plaintext", "hive": "plaintext"}


def results(
    hive: list[float],
    stock: list[float] | None = None,
    unwraps: int = 0,
    waits: tuple[int, int] = (0, 0),
) -> Results:
    """Of one measure in which plaintext takes a second; waits of a KMS that takes 1 and 100 ms."""
    values = {"plaintext": [1.0] * len(hive), "stock": stock or hive, "hive": hive}
    kms = {"peer": "hive", "step": "SELECT", "latency": 1, "wraps": 0, "unwraps": unwraps}
    environment = {"date": "2026-01-01"}
    scan = Measured("scan", "scan", "s", target=1.03, values=values)
    lines = [
        kms | {"latency": latency, "waits": number, "seconds": [latency]}
        for latency, number in zip((1, 100), waits, strict=True)
    ]
    return Results(SETTINGS, environment, AGAINST, {}, [scan], lines)


def content(made: Results) -> dict[str, Any]:
    return asdict(made) | {"cells": [asdict(cell) for cell in made.cells()]}


def around(middle: float) -> list[float]:
    """Nine values."""
    return [middle + 0.005 * i for i in range(-4, 5)]


def test_quartiles() -> None:
    found = quartiles([5, 1, 3, 2, 4])
    assert (found.low, found.median, found.high) == (2, 3, 4)
    assert quartiles([7]).low == 7


def test_ratios_are_of_pairs() -> None:
    slowed_down = [1.0, 10.0, 1.0, 100.0, 1.0]
    found = ratio([1.1 * one for one in slowed_down], slowed_down)
    assert [found.low, found.median, found.high] == pytest.approx([1.1] * 3)


@pytest.mark.parametrize(("rounds", "left_out"), [(1, 0), (4, 0), (5, 0), (9, 1), (11, 2), (20, 5)])
def test_bounds_of_a_median(rounds: int, left_out: int) -> None:
    found = ratio([float(i) for i in range(rounds)], [1.0] * rounds)
    assert (found.low, found.high) == (left_out, rounds - 1 - left_out)


def test_the_bounds_hold_the_true_median_as_often_as_they_say() -> None:
    drawn = random.Random(1)
    held = 0
    for _ in range(2000):
        found = ratio([drawn.lognormvariate(0, 1) for _ in range(9)], [1.0] * 9)
        held += found.low <= 1 <= found.high
    assert 0.9 < held / 2000 < 0.98


def cell_of_hive(made: Results) -> Any:
    return next(cell for cell in made.cells() if cell.peer == "hive")


def test_verdicts() -> None:
    assert cell_of_hive(results(around(1.01))).verdict == MET
    assert cell_of_hive(results(around(1.03))).verdict == MISSED
    assert cell_of_hive(results(around(1.5), stock=around(1.51))).stock_verdict == MET
    assert cell_of_hive(results(around(1.5), stock=around(1.4))).stock_verdict == MISSED
    assert cell_of_hive(results([1.5] * 4, stock=[1.4] * 4)).stock_verdict == TOO_FEW
    assert cell_of_hive(results([1.0] * 4)).verdict == TOO_FEW
    within_the_noise = results([1.0, 1.1] * 4 + [1.1], stock=[1.05] * 9)
    assert cell_of_hive(within_the_noise).stock_verdict == MET


def test_totals_add_up_each_round() -> None:
    parts = [
        Measured(f"Q{i}", "tpch", "s", 1.03, "all", values={"hive": [i, 10.0 * i], "stock": [1.0]})
        for i in (1, 2)
    ]
    parts[1].values.pop("stock")
    total = Results(SETTINGS, {}, AGAINST, {}, parts).every()[-1]
    assert (total.name, total.values) == ("all", {"hive": [3, 30]})


def test_what_is_worse() -> None:
    baseline = baseline_of(content(results(around(1.0), stock=around(1.0))))
    same = results(around(1.0), stock=around(1.0))
    slower = results(around(1.1), stock=around(1.0))
    assert compare(content(same), baseline) == []
    assert compare(content(results(around(0.8), stock=around(1.0))), baseline) == []
    assert [one.what for one in compare(content(slower), baseline)] == [
        "scan, hive / plaintext",
        "scan, hive / stock",
    ]


def test_what_is_not_worse() -> None:
    one = [1.0] * 9
    baseline = baseline_of(content(results(one, stock=one)))
    assert compare(content(results([1.015] * 9, stock=one)), baseline) == [], "below the tolerance"
    noisy = [0.9, 0.95, 0.99, 1.1, 1.2, 1.3, 1.3, 1.3, 1.3]
    assert compare(content(results(noisy, stock=one)), baseline) == [], "within the spread"
    machine_slower = results([10.0] * 9, stock=[10.0] * 9)
    machine_slower.measured[0].values["plaintext"] = [10.0] * 9
    assert compare(content(machine_slower), baseline) == [], "absolute times"


def test_more_calls_to_the_kms_and_waits_for_it_are_worse() -> None:
    """Five unwraps one after the other are as many calls as five at once, and five waits."""
    baseline = baseline_of(content(results(around(1.0), unwraps=5, waits=(3, 1))))
    short = content(results(around(1.0), unwraps=5, waits=(5, 1)))
    assert compare(short, baseline) == [], "calls of 1 ms may be over before the next begins"
    worse = compare(content(results(around(1.0), unwraps=6, waits=(3, 5))), baseline)
    assert list(map(str, worse)) == [
        "calls to the KMS, SELECT, hive, unwraps: 5 -> 6",
        "waits for the KMS, SELECT, hive: 1 -> 5",
    ]


def test_what_cannot_be_compared() -> None:
    made = content(results(around(1.0)))
    baseline = baseline_of(made)
    with pytest.raises(NotComparableError, match=r"scale is 1\.0, the baseline's 0\.1"):
        compare(made | {"settings": SETTINGS | {"scale": 1.0}}, baseline)
    assert missing(made, baseline) == []
    assert missing(made | {"cells": [], "kms": []}, baseline) == [
        "SELECT, hive, unwraps",
        "SELECT, hive, waits",
        "SELECT, hive, wraps",
        "scan, hive / plaintext",
        "scan, hive / stock",
        "scan, stock / plaintext",
    ]


def check(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, CHECK, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_the_command(tmp_path: Path) -> None:
    run, slower, baseline = (tmp_path / f"{name}.json" for name in ("run", "slower", "baseline"))
    run.write_text(json.dumps(content(results(around(1.0), stock=around(1.0)))))
    slower.write_text(json.dumps(content(results(around(1.1), stock=around(1.0)))))
    none_yet = check(run, "--baseline", baseline)
    assert none_yet.returncode == 2
    assert str(baseline) in none_yet.stderr
    assert check(run, "--baseline", baseline, "--accept").returncode == 0
    same = check(run, "--baseline", baseline)
    assert (same.returncode, same.stdout) == (0, "nothing is worse than at 2026-01-01\n")
    worse = check(slower, "--baseline", baseline)
    assert worse.returncode == 1
    assert "worse: scan, hive / plaintext: 1.000 " in worse.stdout
