"""Does what pages say, block by block, as a reader who pastes them, and compares what comes with what they show.

Usage: newcomer.py PAGE...

A block ``sh`` is for a shell, which goes on from block to block and from page to page. ``python`` is pasted into an
interactive Python, which is started in the shell's folder, and left before the next block for the shell. ``text`` shows
the end of what the block before it prints: its lines must come in this order, ``...`` standing for anything. Needs
Python alone: it runs in a system where nothing is installed yet.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

END = "-- pasted --"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPTS = re.compile(r"^(>>> |\.\.\. )+", re.MULTILINE)


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


class Interactive:
    """A program that reads what is pasted."""

    def __init__(self, command: list[str], **options: object) -> None:
        self._process = subprocess.Popen(  # type: ignore[call-overload]  # options are Popen's
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            **options,
        )

    def paste(self, text: str) -> str:
        """Return what the program prints, up to the line that begins with END."""
        self._process.stdin.write(text)
        self._process.stdin.flush()
        said = []
        for line in self._process.stdout:
            said.append(line)
            if END in line:
                return "".join(said)
        raise SystemExit(f"it ended:\n{''.join(said)}")

    def leave(self) -> None:
        """End the program as its user would."""
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.wait()


class Reader:
    """Has a shell, and a Python now and then."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._shell = Interactive(["bash", "--noprofile", "--norc"])
        self._python: Interactive | None = None

    def paste(self, block: Block) -> tuple[str, bool]:
        """Return what a block prints, and whether all of it worked."""
        return self._sh(block.code) if block.language == "sh" else self._interactive(block.code)

    def leave(self) -> None:
        """End the programs."""
        if self._python is not None:
            self._python.leave()
            self._python = None

    def _sh(self, code: str) -> tuple[str, bool]:
        self.leave()
        pasted = self._folder / "pasted"
        pasted.write_text(code)
        said = self._shell.paste(
            f"failed=; trap 'failed=1' ERR; . {pasted} < /dev/null; trap - ERR; echo '{END}'$failed\n"
        )
        said, _, failed = said.rpartition(END)
        return said, not failed.strip()

    def _interactive(self, code: str) -> tuple[str, bool]:
        if self._python is None:
            found = self._folder / "environment"
            self._shell.paste(f"env -0 > {found}; pwd > {found}.pwd; echo '{END}'\n")
            pairs = [one.partition("=") for one in found.read_text().split("\0") if one]
            environment = {name: value for name, _, value in pairs}
            python = shutil.which("python3", path=environment["PATH"])
            self._python = Interactive(
                [str(python), "-i", "-q", "-u"],
                env=environment,
                cwd=Path(f"{found}.pwd").read_text().rstrip("\n"),
            )
        said = self._python.paste(f"{code}\nprint('{END}')\n").rpartition(END)[0]
        said = _PROMPTS.sub("", said)
        return said, re.search(
            r"^(Traceback|SyntaxError|IndentationError)\b", said, re.MULTILINE
        ) is None


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
