"""Runs measures: warm-up, then rounds, in each of which every peer has its turn, in random order."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.protocol import Py4JNetworkError

from suite.data import WRITTEN_ROWS
from suite.registry import Bench, Measure, Run
from suite.results import BOUNDED, Measured, Results

WARM_UP = 2
SHORT = 0.2
"""Seconds. A shorter body runs several times for one value."""
AT_MOST = 20


@dataclass(frozen=True)
class Limits:
    """How long to go on.

    Attributes:
        rounds: of each measure, at most.
        of_parts: of each measure that is part of a total, whose rounds are added up.
        seconds: for the rounds of one measure; what takes longer has fewer, but at least BOUNDED.
        deadline: time.monotonic() after which no measure begins; one that runs ends after its round.
    """

    rounds: int
    of_parts: int
    seconds: float
    deadline: float

    def rounds_of(self, seconds: float) -> int:
        """How many rounds that take so long each."""
        return max(min(self.rounds, BOUNDED), min(self.rounds, int(self.seconds / seconds)))

    def passed(self) -> bool:
        return time.monotonic() > self.deadline


def run_all(
    bench: Bench,
    measures: Sequence[Measure],
    peers: Sequence[str],
    limits: Limits,
    results: Results,
    save: Callable[[], None],
) -> None:
    """Runs what is not in the results yet; saves after each measure."""
    late = []
    for measure in measures:
        if results.has(measure.name):
            continue
        if limits.passed():
            late.append(measure.name)
            continue
        chosen = [name for name in measure.peers if name in peers]
        if chosen:
            one = run_one(bench, measure, chosen, limits, results)
            if one.values:
                results.measured.append(one)
                print(one.line(results.against), flush=True)
        save()
    if late:
        results.fail("; ".join(late), "", "not run: the time was up")
        save()


def run_one(
    bench: Bench, measure: Measure, peers: Sequence[str], limits: Limits, results: Results
) -> Measured:
    """A peer that fails is reported, and the others go on."""
    found = Measured(measure.name, measure.group, measure.unit, measure.target, measure.total)
    runs: dict[str, Run] = {}
    quickest = SHORT

    def turn(name: str, work: Callable[[], float | None]) -> float | None:
        try:
            return work()
        except Py4JNetworkError:  # there is no JVM any more
            raise
        except Exception as error:  # noqa: BLE001 (whatever a peer cannot do is a result)
            results.fail(measure.name, name, first_line(error))
            runs.pop(name, None)
            found.values.pop(name, None)
            return None

    def prepare(name: str) -> None:
        runs[name] = measure.prepare(bench, bench.peers[name])

    for name in peers:
        turn(name, partial(prepare, name))
    start = time.monotonic()
    for _ in range(1 if measure.total else WARM_UP):
        start = time.monotonic()
        for name in list(runs):
            taken = turn(name, partial(timed, runs[name], 1))
            quickest = min(quickest, taken or SHORT)
    times = min(AT_MOST, max(1, round(SHORT / quickest)))
    rounds = limits.rounds_of(max(times * (time.monotonic() - start), 0.001))
    for _ in range(limits.of_parts if measure.total else rounds):
        order = list(runs)
        bench.random.shuffle(order)
        for name in order:
            taken = turn(name, partial(timed, runs[name], times))
            if taken is not None:
                found.add(name, taken)
        if limits.passed():
            break
    if measure.rows:
        found.rows = rows_of(bench, measure.rows)
    bench.spark.catalog.clearCache()
    return found


def timed(run: Run, times: int) -> float:
    """Seconds of one body, or the value that it returns."""
    if run.before:
        run.before()
        times = 1
    start = time.perf_counter()
    value = None
    for _ in range(times):
        value = run.body()
    return (time.perf_counter() - start) / times if value is None else value


def rows_of(bench: Bench, name: str) -> int:
    if name == "written":
        return min(WRITTEN_ROWS[bench.full], bench.data.rows("lineitem").count())
    return bench.data.rows(name).count()


def first_line(error: Exception) -> str:
    """Of the cause, if Java raised it."""
    java: Any = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    text = f"{type(error).__name__}: {error}" if java is None else str(java.toString())
    return next((line[:300] for line in text.splitlines() if line.strip()), "")
