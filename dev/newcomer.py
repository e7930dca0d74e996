"""Does what pages say, block by block, as a reader who pastes them, and compares what comes with what they show.

Usage: newcomer.py PAGE...

A block ``sh`` is for a shell, which goes on from block to block and from page to page. ``python`` is pasted into an
interactive Python, which is started in the shell's folder, and left before the next block for the shell. ``text`` shows
the end of what the block before it prints: its lines must come in this order, ``...`` standing for anything. Needs
Python alone: it runs in a system where nothing is installed yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

END, LEFT = "-- pasted --", "-- left --"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPTS = re.compile(r"^(>>> |\.\.\. )+", re.MULTILINE)
_ERROR = re.compile(r"^(Traceback|SyntaxError|IndentationError)\b", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block to paste.

    Attributes:
        where: the page and the line.
        language: sh or python.
        code: what to paste.
        shown: what the page says that it prints; empty: nothing.
    """

    where: str
    language: str
    code: str
    shown: str = ""


class Reader:
    """Pastes into a shell, and into a Python that is started there."""

    def __init__(self) -> None:
        self._file = Path(tempfile.mkdtemp()) / "pasted"
        self._in_python = False
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def paste(self, block: Block) -> tuple[str, bool]:
        """Return what a block prints, and whether all of it worked."""
        if block.language == "python":
            if not self._in_python:
                self._write(f"python3 -i -q -u; echo '{LEFT}'\n")
            self._in_python = True
            self._write(f"{block.code}\nprint('{END}')\n")
            said = _PROMPTS.sub("", self._read(END)[0])
            return said, _ERROR.search(said) is None
        self.leave()
        self._file.write_text(block.code)
        run = f". {self._file} < /dev/null"
        self._write(f"failed=; trap 'failed=1' ERR; {run}; trap - ERR; echo '{END}'$failed\n")
        said, failed = self._read(END)
        return said, not failed

    def leave(self) -> None:
        """End the Python, if there is one."""
        if self._in_python:
            self._write("exit()\n")
            self._read(LEFT)
        self._in_python = False

    def _write(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text)
        self._shell.stdin.flush()

    def _read(self, end: str) -> tuple[str, str]:
        """Return what is printed before the end, and what is on its line after it."""
        said = ""
        for line in self._shell.stdout or ():
            said += line
            if end in line:
                before, _, after = said.rpartition(end)
                return before, after.strip()
            if LEFT in line:
                break
        raise SystemExit(f"it ended:\n{said}")


def blocks(page: Path) -> list[Block]:
    """Read the blocks of a page.

    Raises:
        SystemExit: a block is of another language: nobody would know what to do with it.
    """
    text = page.read_text()
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        where = f"{page}:{text.count(chr(10), 0, match.start()) + 1}"
        language, content = match.groups()
        if language == "text" and found:
            before = found.pop()
            found.append(Block(before.where, before.language, before.code, content))
        elif language in ("sh", "python"):
            found.append(Block(where, language, content))
        else:
            raise SystemExit(f"{where}: a block of language {language!r}: sh, python or text")
    return found


def missing(shown: str, said: str) -> str | None:
    """Return the first line that a page shows and that did not come in its turn; None: all came."""
    lines = iter(said.splitlines())
    for line in filter(None, map(str.strip, shown.splitlines())):
        wanted = re.compile(".*".join(map(re.escape, line.split("..."))))
        if not any(wanted.fullmatch(one.strip()) for one in lines):
            return line
    return None


def main(pages: list[str]) -> int:
    """Paste all blocks of all pages; return the exit code."""
    todo = [block for page in pages for block in blocks(Path(page))]
    reader = Reader()
    wrong = 0
    for block in todo:
        print(f"\n== {block.where}\n{block.code}--", flush=True)
        began = time.monotonic()
        said, works = reader.paste(block)
        lacks = missing(block.shown, said)
        verdict = "works" if works else "FAILS"
        verdict += f", and does not print {lacks!r}" if lacks is not None else ""
        wrong += not works or lacks is not None
        print(f"{said[-6000:]}\n-- {block.where} {verdict}, {time.monotonic() - began:.0f} s")
    reader.leave()
    print(f"\n{len(todo)} blocks pasted, {wrong} not as the pages say")
    return 1 if wrong or not todo else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
