"""What AES GCM streams cost, from the figures of JMH: ours beside Iceberg's and beside the cipher without a stream.

    make bench-streams

Prints, for each length of file, MB/s of plaintext and the memory that one use takes: of the cipher alone, of the
cipher with reads and writes of the stored bytes ("raw"), of our streams and of Iceberg's. Exit code 1: reading or
writing 128 MiB has less than 90 % of raw speed, or a file of 4 KB takes 1 MiB.
"""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = 0.9
LARGE = 134217728
SMALL = 4096
WHOLE = ("read", "writeAll")


def main(file: Path) -> int:
    found = {}
    for result in json.loads(file.read_text()):
        given = result["params"]
        key = result["benchmark"].rpartition(".")[2], int(given["length"]), int(given["part"])
        found.setdefault(key, {})[given["streams"]] = figures(result)
    missed = 0
    print(
        "operation      length     part | MB/s: cipher    raw   ours  Iceberg's | KB taken: ours  Iceberg's"
    )
    for (operation, length, part), streams in sorted(found.items()):
        count = length if operation in WHOLE else min(length, SMALL)
        speeds = {name: count / time for name, (time, _, _) in streams.items()}
        taken = {name: memory / 1000 for name, (_, _, memory) in streams.items()}
        share = speeds["ours"] / speeds["raw"]
        print(
            f"{operation:9} {length:11} {part:8} | {speeds['cipher']:12.0f} {speeds['raw']:6.0f}"
            f" {speeds['ours']:6.0f} {speeds['iceberg']:10.0f} | {taken['ours']:14.0f} {taken['iceberg']:10.0f}"
            f" | ours {100 * share:3.0f} % of raw"
        )
        if length == LARGE and part > SMALL * 2 and operation in WHOLE and share < TARGET:
            missed += 1
            print(f"    target {100 * TARGET:.0f} %: missed")
        if length == SMALL and taken["ours"] > 1000:
            missed += 1
            print("    target less than 1 MiB: missed")
    return 1 if missed else 0


def figures(result: dict[str, Any]) -> tuple[float, float, float]:
    """Microseconds, their error, and bytes taken, each for one use."""
    metric = result["primaryMetric"]
    rates = result["secondaryMetrics"]
    taken = next(rates[name]["score"] for name in rates if name.endswith("gc.alloc.rate.norm"))
    return metric["score"], metric["scoreError"], taken


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
