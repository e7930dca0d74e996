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
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "page.md").write_text(f"{AGAIN}\n")
    done = subprocess.run([sys.executable, PROGRAM, tmp_path], capture_output=True, text=True)
    assert [line.rpartition(": write ")[0] for line in done.stdout.splitlines()] == [
        f"code.py:1: '{AGAIN}'",
        f"page.md:2: '{ABSENT}'",
        "page.md:1: 'goes on'",
    ]
    assert done.returncode == 1
    (tmp_path / "page.md").unlink()
    (tmp_path / "code.py").unlink()
    assert subprocess.run([sys.executable, PROGRAM, tmp_path]).returncode == 0
