"""Finds words that read translated, in documents, comments and messages; dev/words.txt lists them.

Usage: words.py [FOLDER]: prints each place and what to write there; exit code 1 if there is one.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("words.txt")
CODE = (".py", ".java")
DOCUMENTS = (".md", ".ipynb", ".html.j2", "properties.tsv")
# The first quotes the words; the second is of the past.
LEFT_OUT = {
    "everywhere": ("CONTRIBUTING.md",),
    "documents": ("CONTRIBUTING.md", "CHANGELOG.md"),
}
# Whose strings no user sees.
OURS = {"benchmarks", "dev", "test", "tests"}
# What stands between the words where a comment, or a cell's text, continues on the next line.
JOINTS = {
    ".py": re.compile(r"\n[ \t]*#"),
    ".java": re.compile(r"\n[ \t]*(?://|\*(?!/))"),
    ".ipynb": re.compile(r'\\n",\n[ \t]*"'),
}
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*\+\s*"(?:\\.|[^"\\\n])*")*')


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
        yield from (Path(folder, one) for one in sorted(files) if one.endswith(CODE + DOCUMENTS))


def joined(path: Path) -> str:
    """Give a file's text, with spaces for what stands between the words at a line's end."""
    text = path.read_text(encoding="utf-8")
    joint = JOINTS.get(path.suffix)
    return joint.sub(lambda found: "\n" + " " * (len(found[0]) - 1), text) if joint else text


def strings(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Give the line and the text of each string in code; those that are joined are one."""
    if path.suffix == ".java":
        for found in LITERALS.finditer(text):
            yield (
                text.count("\n", 0, found.start()) + 1,
                re.sub(r'"\s*\+\s*"', "", found[0]),
            )
        return
    nodes = list(ast.walk(ast.parse(text)))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            said = (one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)
            yield node.lineno, "".join(map(str, said))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield node.lineno, str(node.value)


def of_section(section: str, path: Path, text: str, root: Path) -> Iterator[tuple[int, str]]:
    """Give the texts of a file in which a section's words are looked for, with their first lines."""
    if path.name in LEFT_OUT[section]:
        return
    if section == "everywhere" or path.name.endswith(DOCUMENTS):
        yield 1, text
    elif not OURS.intersection(path.relative_to(root).parts):
        yield from strings(path, path.read_text(encoding="utf-8"))


def main(root: Path) -> int:
    """Print what is found; return the exit code."""
    listed, found = list(words()), 0
    for path in texts(root):
        text = joined(path)
        for section in LEFT_OUT:
            for start, part in of_section(section, path, text, root):
                for word, instead in ((word, to) for of, word, to in listed if of == section):
                    for match in word.finditer(part):
                        line = start + part.count("\n", 0, match.start())
                        said = " ".join(match[0].split())
                        print(f"{path.relative_to(root)}:{line}: {said!r}: write {instead}")
                        found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else ".")))
