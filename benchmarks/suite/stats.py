"""Medians, their spread, and ratios of pairs."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Spread:
    """A median between two bounds."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def quartiles(values: Sequence[float]) -> Spread:
    """The median and the quartiles around it; of one value, that value."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def ratio(values: Sequence[float], others: Sequence[float]) -> Spread:
    """The median of the ratios of each round, and the bounds that hold the true median with 90 % confidence.

    Each ratio is of two values of the same round, so that what slows a whole round down is in both. The bounds are
    order statistics (the binomial interval of a median), which assume no distribution. Fewer than five rounds have no
    such bounds: then they are the lowest and the highest ratio.
    """
    ratios = sorted(a / b for a, b in zip(values, others, strict=True))
    outside = _outside(len(ratios))
    return Spread(statistics.median(ratios), ratios[outside], ratios[-1 - outside])


def _outside(count: int) -> int:
    """How many values can be left out at each end so that the rest holds the median with the confidence."""
    left_out = 0
    below = 0.0  # the chance that the median is below the value with this index
    while left_out <= (count - 1) // 2:
        below += comb(count, left_out) / 2**count
        if 1 - 2 * below < CONFIDENCE:
            break
        left_out += 1
    return max(left_out - 1, 0)
