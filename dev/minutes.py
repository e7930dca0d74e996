"""Says where the minutes of `make test` go: Java's classes and Python's modules that take longest, set-up included.

Below that it names each test that failed, so that the end of a log has them.

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


def failed(report: Path) -> list[str]:
    """Each test that failed, and the first line of why."""
    lines = []
    for case in ET.parse(report).iter("testcase"):
        for why in (*case.iter("failure"), *case.iter("error")):
            said = why.get("message") or why.text or ""
            reason = next((line.strip() for line in said.splitlines() if line.strip()), "")[:200]
            lines.append(f"FAILED {case.attrib['classname']}.{case.attrib['name']}: {reason}")
    return lines


def module(classname: str) -> str:
    """Java's class, without a nested one; Python's module, whose names begin with small letters."""
    if not classname.startswith("tests."):
        return classname.partition("$")[0]
    return ".".join(part for part in classname.split(".") if part.islower())


if __name__ == "__main__":
    reports = sorted(Path(sys.argv[1]).glob("*.xml"))
    for report in reports:
        if rows := table(report):
            print(rows, end="\n\n")
    for line in (line for report in reports for line in failed(report)):
        print(line)
