"""Finds words that read translated, in documents, comments and messages; dev/words.txt lists them.

Usage: words.py [FOLDER]: prints each place and what to write there; exit code 1 if there is one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("words.txt")
DOCUMENTS, EVERYWHERE = (".md", ".ipynb"), (".md", ".ipynb", ".py", ".java")
# The first quotes the words; the second is of the past.
LEFT_OUT = {"everywhere": ("CONTRIBUTING.md",), "documents": ("CONTRIBUTING.md", "CHANGELOG.md")}


def words() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Give each line of the list: where it holds, the expression, and what to write instead."""
    section = ""
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            found, instead = line.split(" => ")
            yield (
                section,
                re.compile(rf"\b(?:{found})\b".replace(" ", r"\s+"), re.IGNORECASE),
                instead,
            )


def texts(root: Path) -> Iterator[Path]:
    """Give the files of a project, but for what is hidden or was built."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            one for one in folders if one[0] != "." and one not in ("build", "dist")
        )
        yield from (Path(folder, one) for one in sorted(files) if one.endswith(EVERYWHERE))


def main(root: Path) -> int:
    """Print what is found; return the exit code."""
    listed, found = list(words()), 0
    for path in texts(root):
        text = path.read_text(encoding="utf-8")
        for section, word, instead in listed:
            if path.name in LEFT_OUT[section] or (
                section == "documents" and path.suffix not in DOCUMENTS
            ):
                continue
            for match in word.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                said = " ".join(match[0].split())
                print(f"{path.relative_to(root)}:{line}: {said!r}: write {instead}")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else ".")))
