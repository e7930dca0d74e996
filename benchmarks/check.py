"""Compares a run with the committed baseline, and says what got worse.

    python benchmarks/check.py RESULTS.json [--baseline FILE] [--accept]

RESULTS.json is what benchmarks/run.py wrote. Only ratios of one run to another are compared, and numbers of calls to
the KMS and of waits for it. Exit code 0: nothing got worse; 1: something did; 2: they cannot be compared. --accept
makes RESULTS.json the baseline.
"""

import argparse
import json
import sys
from pathlib import Path

from suite.compare import NotComparableError, baseline_of, compare, missing, text_of

BASELINE = Path(__file__).with_name("baseline.json")


def main(results: Path, baseline: Path, accept: bool) -> int:
    try:
        content = json.loads(results.read_text())
        if accept:
            baseline.write_text(text_of(baseline_of(content)))
            print(f"{baseline}: {len(content['cells'])} cells accepted")
            return 0
        committed = json.loads(baseline.read_text())
        worse, lacking = compare(content, committed), missing(content, committed)
    except (OSError, ValueError, KeyError, NotComparableError) as error:
        print(f"error: cannot compare {results} with {baseline}: {error}", file=sys.stderr)
        return 2
    for one in worse:
        print(f"worse: {one}")
    for name in lacking:
        print(f"not measured: {name}")
    if not worse and lacking:
        return 2
    if not worse:
        print(f"nothing is worse than at {committed['environment']['date']}")
    return 1 if worse else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What got worse since the baseline.")
    parser.add_argument("results", type=Path)
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    parser.add_argument("--accept", action="store_true", help="make this the baseline")
    given = parser.parse_args()
    sys.exit(main(given.results, given.baseline, given.accept))
