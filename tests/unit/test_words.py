"""Words that read translated: dev/words.py."""

import subprocess
import sys
from pathlib import Path

# In two parts: this file is searched, too.
AGAIN, ABSENT = "ane" + "w", "is no" + "ne"
PROGRAM = Path(__file__).parents[2] / "dev" / "words.py"


def test_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(f"It goes\non, and {ABSENT}.\nNothing else.\n")
    (tmp_path / "code.py").write_text(f"# Begins {AGAIN}, goes on.\nfound is None\n")
    (tmp_path / "CHANGELOG.md").write_text("It goes on.\n")
    (tmp_path / "notes.py").write_text(
        f"# It {ABSENT.split()[0]}\n# none.\nsaid = 'it goes ' f'on {1}'\n"
    )
    (tmp_path / "Code.java").write_text('String a = "it goes "\n    + "on";\n')
    (tmp_path / "book.ipynb").write_text('{"cells": [{"source": ["it goes\\n",\n  "on"]}]}')
    (tmp_path / "page.html.j2").write_text("It goes on.\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_code.py").write_text("assert 'it goes on'\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "page.md").write_text(f"{AGAIN}\n")
    done = subprocess.run([sys.executable, PROGRAM, tmp_path], capture_output=True, text=True)
    assert [line.rpartition(": write ")[0] for line in done.stdout.splitlines()] == [
        "Code.java:1: 'goes on'",
        "book.ipynb:1: 'goes on'",
        f"code.py:1: '{AGAIN}'",
        f"notes.py:1: '{ABSENT}'",
        "notes.py:3: 'goes on'",
        "page.html.j2:1: 'goes on'",
        f"page.md:2: '{ABSENT}'",
        "page.md:1: 'goes on'",
    ]
    assert done.returncode == 1
    for found in tmp_path.glob("*.*"):
        found.unlink()
    assert subprocess.run([sys.executable, PROGRAM, tmp_path]).returncode == 0
