"""Tab in real shells: what `iceberg-crypto completion` prints completes commands, options and values there."""

import os
import pty
import select
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest
from harness.jars import ROOT

pytestmark = pytest.mark.nightly

START = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(iceberg-crypto completion bash)"'),
    "zsh": (
        ["-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; eval "$(iceberg-crypto completion zsh)"',
    ),
    "fish": (["--no-config", "-i"], "iceberg-crypto completion fish | source"),
}


class Terminal:
    """A shell that someone types in."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path) -> None:
        self._process, self._screen = pty.fork()
        if self._process == 0:
            os.chdir(cwd)
            os.execvpe(command[0], command, environment)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def until(self, wanted: str, seconds: float = 30) -> str:
        """What the screen shows, up to a text."""
        shown = ""
        end = time.monotonic() + seconds
        while wanted not in shown:
            ready, _, _ = select.select([self._screen], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {wanted!r} in {shown!r}"
            shown += os.read(self._screen, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        os.close(self._screen)
        os.waitpid(self._process, 0)


@pytest.mark.parametrize("shell", START)
def test_tab(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: as root, make nightly-tools")
    program = tmp_path / "bin" / "iceberg-crypto"
    program.parent.mkdir()
    python = "from pyspark_iceberg_crypto.cli import main; main(prog_name='iceberg-crypto')"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(python)} "$@"\n')
    program.chmod(0o755)
    environment = {
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
    }
    options, start = START[shell]
    terminal = Terminal([shell, *options], environment, tmp_path)
    try:
        terminal.type(f"{start}; echo rea''dy\n")
        terminal.until("ready")
        for typed, completed in (
            ("kms key\t", "kms keystore"),
            ("verify --dee\t", "verify --deep"),
            ("doctor --kms key\t", "doctor --kms keystore"),
        ):
            terminal.type(f"iceberg-crypto {typed}")
            terminal.until(completed)
            terminal.type("\x15")  # the line is taken back
    finally:
        terminal.close()
