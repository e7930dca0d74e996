"""Measures encrypted tables beside plaintext, stock Iceberg's encryption, and other ways to encrypt, in one run.

    python benchmarks/run.py [--full] [--only GROUPS] [--matching REGEX] [--peers NAMES] [--rounds N]
                             [--minutes N] [--seed N] [--scale SF] [--out FILE.json] [--resume] [--write-docs]

One Spark session has all catalogs. In each round every peer has its turn, in random order (the seed is printed).
Results are written after each measure, as JSON and as a plot beside it; --resume continues such a file. A measure
that fails is reported, and the others continue. --write-docs puts the tables into docs/benchmarks.md and
docs/benchmarks-tables.md. --list shows groups, measures and peers. Needs the extra `bench`; docs/benchmarks-tables.md
explains what is measured.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite import measures  # noqa: F401 (registers them)
from suite.data import Data
from suite.environment import environment
from suite.kms_cost import kms_costs
from suite.peers import all_peers
from suite.registry import EVERYONE, MEASURES, Bench, Measure
from suite.report import report, summary, write_docs
from suite.results import BOUNDED, Results, read
from suite.runner import Limits, first_line, run_all
from suite.session import session

HERE = Path(__file__).parent
KMS = "kms"
OUT = HERE.parent / "build" / "benchmarks" / "results.json"
DOCS = HERE.parent / "docs"
MODES = {
    False: {"scale": 0.1, "rounds": 7, "minutes": 16},
    True: {"scale": 1.0, "rounds": 11, "minutes": 180},
}
"""What holds in quick and in full mode, if nothing else is given."""
SECONDS = {False: 12, True: 600}
"""For the rounds of one measure."""


def main(given: argparse.Namespace) -> int:
    chosen = [
        one
        for one in MEASURES
        if (given.full or not one.full_only)
        and (not given.only or one.group in given.only)
        and given.matching.search(one.name)
    ]
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 31)
    print(f"seed {seed}", flush=True)
    settings = {
        "mode": "full" if given.full else "quick",
        "scale": given.scale,
        "rounds": given.rounds,
        "cores": given.cores,
        "seed": seed,
    }
    parts = given.rounds if given.full else min(given.rounds, BOUNDED)
    deadline = time.monotonic() + 60 * given.minutes
    limits = Limits(given.rounds, parts, SECONDS[given.full], deadline)
    with session(given.cores, given.memory) as (spark, world):
        folder = Path(tempfile.mkdtemp(dir=world.root))
        peers = all_peers(str(folder))
        results = Results(
            settings,
            environment(spark, given.cores, given.memory),
            {name: peer.against for name, peer in peers.items()},
            {name: peer.about for name, peer in peers.items()},
        )
        if given.resume and given.out.exists():
            results = gone_on_with(results, read(given.out))
        bench = Bench(
            spark,
            world,
            Data(spark, folder, given.scale),
            peers,
            given.full,
            random.Random(seed),
            folder,
        )
        measure_all(bench, chosen, given, limits, results)
    finish(results, given)
    return 1 if results.failures else 0


def gone_on_with(new: Results, old: Results) -> Results:
    """What was measured before counts, what failed is tried again."""
    for name in ("mode", "scale", "cores"):
        if old.settings[name] != new.settings[name]:
            raise SystemExit(f"--resume: {name} was {old.settings[name]}, is {new.settings[name]}")
    if old.environment["commit"] != new.environment["commit"]:
        print(f"--resume: what stands there was measured at {old.environment['commit'][:12]}")
    new.measured, new.kms = old.measured, old.kms
    return new


def measure_all(
    bench: Bench,
    chosen: Sequence[Measure],
    given: argparse.Namespace,
    limits: Limits,
    results: Results,
) -> None:
    def save() -> None:
        results.write(given.out)

    if (not given.only or KMS in given.only) and not results.kms:
        try:  # first: it is short, and its figures are the same on a loaded machine
            results.kms = list(kms_costs(bench, given.peers, 3 if given.full else 1))
        except Exception as error:  # noqa: BLE001 (the measures go on)
            results.fail(KMS, "", first_line(error))
        save()
    run_all(bench, chosen, given.peers, limits, results, save)


def finish(results: Results, given: argparse.Namespace) -> None:
    text = report(results)
    print(text)
    print(f"results: {given.out}")
    draw_plot(results, given.out.with_suffix(".svg"))
    if given.write_docs:
        draw_plot(results, DOCS / "images" / "benchmarks.svg")
        picture = "![Ratios of all measures](images/benchmarks.svg)"
        write_docs(DOCS / "benchmarks.md", f"{summary(results)}\n{picture}\n")
        write_docs(DOCS / "benchmarks-tables.md", text)


def draw_plot(results: Results, path: Path) -> None:
    try:
        from suite.plot import draw
    except ImportError:
        print("no plot: matplotlib is not installed (pip install '.[bench]')")
        return
    draw(results, path)


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Encrypted tables beside plaintext, in one run.")
    parser.add_argument("--full", action="store_true", help="larger data, more rounds")
    parser.add_argument("--only", type=names, default=[], help="groups of measures, by commas")
    parser.add_argument(
        "--matching", type=re.compile, default="", help="part of the names of measures"
    )
    parser.add_argument("--peers", type=names, default=list(EVERYONE), help="names, by commas")
    parser.add_argument("--rounds", type=int, help="values of each cell (7; full: 11)")
    parser.add_argument("--minutes", type=float, help="then nothing new begins (16; full: 180)")
    parser.add_argument("--scale", type=float, help="TPC-H's scale factor (0.1; full: 1)")
    parser.add_argument("--seed", type=int, help="of the random order")
    parser.add_argument("--cores", type=int, default=2, help="of Spark (2)")
    parser.add_argument("--memory", default="4g", help="of Spark's driver (4g)")
    parser.add_argument("--out", type=Path, default=OUT, help="JSON; the plot is beside it")
    parser.add_argument("--resume", action="store_true", help="go on with the file of --out")
    parser.add_argument("--write-docs", action="store_true", help="update docs/benchmarks*.md")
    parser.add_argument("--list", action="store_true", help="groups, measures and peers")
    given = parser.parse_args()
    for name, value in MODES[given.full].items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    groups = {one.group for one in MEASURES} | {KMS}
    for wrong in [*(set(given.only) - groups), *(set(given.peers) - set(EVERYONE))]:
        parser.error(f"{wrong} is neither a group ({', '.join(sorted(groups))}) nor a peer")
    return given


def show() -> None:
    for one in MEASURES:
        print(f"{one.group:9} {one.name:45} {', '.join(one.peers)}")
    print(f"{KMS:9} calls to the KMS")
    found: dict[str, Any] = all_peers("")
    for name, peer in found.items():
        print(f"peer {name:16} {peer.about}")


if __name__ == "__main__":
    options = arguments()
    if options.list:
        show()
        sys.exit()
    sys.exit(main(options))
