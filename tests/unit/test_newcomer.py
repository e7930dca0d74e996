"""What pastes pages into a new Debian notices when a page is wrong, and refuses where it cannot run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = """
```sh
export FOUND=5
echo hello there
```

```text
hello ...
```

```python
import os

for _ in range(1):
    print(os.environ["FOUND"])
```

```text
5
```
"""


def paste(folder: Path, text: str) -> tuple[int, str]:
    page = folder / "page.md"
    page.write_text(text)
    done = subprocess.run(
        [sys.executable, str(ROOT / "dev" / "newcomer.py"), str(page)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_page_that_is_right(tmp_path: Path) -> None:
    code, said = paste(tmp_path, PAGE)
    assert (code, "2 blocks pasted, 0 not as the pages say" in said) == (0, True), said


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("hello ...", "goodbye", "does not print 'goodbye'"),
        ("echo", "false; echo", "FAILS"),
        ("    print(", "    raise SystemError(", "FAILS"),
        ("```python\nimport os\n\nfor", "```python\nimport os\nfor _ in ():\n    1\nfor", "FAILS"),
        ("```text\n5", "```yaml\n5", "a block of language 'yaml'"),
    ],
    ids=["output", "shell", "python", "no blank line", "language"],
)
def test_a_page_that_is_wrong(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    assert right in PAGE
    code, said = paste(tmp_path, PAGE.replace(right, wrong))
    assert (code, says in said) == (1, True), said


def test_without_root_it_says_so(tmp_path: Path) -> None:
    program = tmp_path / "id"
    program.write_text("#!/bin/sh\necho 1000\n")
    program.chmod(0o755)
    done = subprocess.run(
        [str(ROOT / "dev" / "newcomer.sh")],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "error: a new system can be made by root only\n  hint: run it as root\n"
