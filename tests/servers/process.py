"""Servers in processes of their own; those that are programs of this folder tell where they listen."""

import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from harness.programs import START_SECONDS, wait_for_end

Process = subprocess.Popen[str]


@dataclass
class Server:
    """A running server. `stop` ends this process and no other."""

    process: "subprocess.Popen[Any]"
    uri: str

    def stop(self) -> None:
        end(self.process)


def start_server(
    command: Sequence[object], log: Path, told: str = "", cwd: Path | None = None
) -> tuple[Process, str]:
    """Starts one, and returns what it writes once it listens.

    Args:
        log: gets what it writes to standard error.
        told: what its first line begins with, which is left out.
    """
    with log.open("a") as errors:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    lines: Queue[str] = Queue()
    read_line = process.stdout.readline
    threading.Thread(target=lambda: lines.put(read_line()), daemon=True).start()
    line = ""
    with suppress(Empty):
        line = lines.get(timeout=START_SECONDS).strip()
    if not line or not line.startswith(told):
        process.kill()
        process.wait()
        raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}")
    return process, line.removeprefix(told)


def start_java(
    program: str,
    classes: Sequence[Path],
    arguments: Sequence[object],
    log: Path,
    java: Sequence[str] = (),
    cwd: Path | None = None,
) -> tuple[Process, int]:
    """Starts one of this folder's programs in Java; returns its port, too."""
    source = Path(__file__).with_name(f"{program}.java")
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *java]
    command = ["java", *options, "-cp", ":".join(map(str, classes)), source, *arguments]
    process, port = start_server(command, log, "PORT ", cwd)
    return process, int(port)


def end(process: "subprocess.Popen[Any]") -> None:
    """Ends one of them, and no other; programs of this folder end when their input does."""
    if process.stdin is None:
        process.terminate()
    else:
        process.stdin.close()
    wait_for_end(process)
