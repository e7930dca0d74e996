"""Counts what a run has done, and what it has never reached."""

from collections import Counter
from dataclasses import dataclass, field

from harness.counts import told

from twin.operations import BY_NAME


@dataclass
class Tally:
    """Of all histories of one test, those that hypothesis repeats to shrink a failure included."""

    histories: int = 0
    steps: int = 0
    planted: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.histories += other.histories
        self.steps += other.steps
        for mine, theirs in (
            (self.planted, other.planted),
            (self.reached, other.reached),
            (self.refused, other.refused),
        ):
            mine.update(theirs)

    @property
    def never(self) -> list[str]:
        return sorted(BY_NAME.keys() - self.reached.keys())

    def __str__(self) -> str:
        return (
            f"{self.histories} histories, {self.steps} steps, {len(self.reached)} of {len(BY_NAME)} "
            f"operations\ndone: {told(self.reached)}\nrefused by both: {told(self.refused)}\nnever done: "
            f"{', '.join(self.never) or 'nothing'}\nplanted changes found: {told(self.planted)}"
        )
