"""The benchmarks behind docs/benchmarks.md: peers, measures, rounds, and what is made of the results."""

import sys
from pathlib import Path

# for harness and servers
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
