"""What pastes pages into a new Debian notices when a page is wrong."""

import subprocess
import sys
from pathlib import Path

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


def test_a_page_that_is_wrong(tmp_path: Path) -> None:
    page = PAGE.replace("hello ...", "goodbye").replace("    print(", "    raise SystemError(")
    code, said = paste(tmp_path, page)
    assert code == 1
    assert "does not print 'goodbye'" in said and "FAILS, and does not print '5'" in said
