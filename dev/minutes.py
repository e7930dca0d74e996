"""Says where the minutes of `make test` go: Java's classes and Python's modules that take longest, set-up included.

Usage: minutes.py FOLDER   with what JUnit and pytest report there, in JUnit's XML
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

LONGEST = 10


def table(report: Path) -> str:
    """A line for each of the longest, and one for the others."""
    took: dict[str, float] = {}
    for case in ET.parse(report).iter("testcase"):
        name = module(case.attrib["classname"])
        took[name] = took.get(name, 0) + float(case.attrib["time"])
    order = sorted(took, key=lambda name: -took[name])
    lines = [f"{took[name] / 60:6.1f} min  {name}" for name in order[:LONGEST]]
    if others := order[LONGEST:]:
        lines.append(f"{sum(took[name] for name in others) / 60:6.1f} min  {len(others)} others")
    return "\n".join(lines)


def module(classname: str) -> str:
    """Java's class, without a nested one; Python's module, whose names begin with small letters."""
    if not classname.startswith("tests."):
        return classname.partition("$")[0]
    return ".".join(part for part in classname.split(".") if part.islower())


if __name__ == "__main__":
    for report in sorted(Path(sys.argv[1]).glob("*.xml")):
        if rows := table(report):
            print(rows, end="\n\n")
