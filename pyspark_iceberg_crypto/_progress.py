"""Shows how far a verification is: with Rich in a terminal, as lines of text in a notebook."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from pyspark_iceberg_crypto._typed import UNTYPED
from pyspark_iceberg_crypto.reports._text import size

_EVERY_SECONDS = 0.5
_LINE_EVERY_SECONDS = 10.0


def is_wanted(progress: bool | None) -> bool:
    """Tell whether to show it: as asked for, else when a person looks on."""
    return progress if progress is not None else sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Tell whether this runs in a notebook, where stderr is no terminal but a person reads it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def shown(title: str, ask: Callable[[], str]) -> Iterator[None]:
    """Show progress on stderr while the block runs.

    Args:
        title: what is verified.
        ask: gives the JVM's ``Progress.json()``; called from another thread.
    """
    done = threading.Event()
    show = _in_terminal if sys.stderr.isatty() else _as_lines
    thread = threading.Thread(target=show, args=(title, ask, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


@contextmanager
def counted(title: str, total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show on stderr how many of so many things are done.

    Args:
        title: what they are, such as "tables".
        total: how many there are.
        wanted: whether to show it.

    Yields:
        what is to be called with the number that is done.
    """
    if not wanted:
        yield lambda _: None
        return
    with Progress(console=Console(file=sys.stderr), transient=True) as bars:
        task = bars.add_task(title, total=total)
        yield lambda done: bars.update(task, completed=done)


def _told(ask: Callable[[], str]) -> dict[str, Any] | None:
    try:
        return dict(json.loads(ask()))
    except (
        *UNTYPED,
        OSError,
        ValueError,
    ):  # the JVM may be about to end; the call that it works on says why
        return None


def _in_terminal(title: str, ask: Callable[[], str], done: threading.Event) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar: TaskID = bars.add_task(title, total=None, told="")
        while not done.wait(_EVERY_SECONDS):
            if found := _told(ask):
                total = found["files_total"] or None
                bars.update(
                    bar,
                    description=f"{title}: {found['step']}",
                    total=total,
                    completed=found["files"],
                    told=line(found),
                )


def _as_lines(title: str, ask: Callable[[], str], done: threading.Event) -> None:
    while not done.wait(_LINE_EVERY_SECONDS):
        if found := _told(ask):
            sys.stderr.write(f"{title}: {found['step']}, {line(found)}\n")
            sys.stderr.flush()


def line(found: dict[str, Any]) -> str:
    """Say in one line how far a step is."""
    if not found["files_total"]:
        return f"{found['files']:,} files"
    told = f"{found['files']:,} of {found['files_total']:,} files"
    if found["bytes_total"]:
        told += f", {size(found['bytes'])} of {size(found['bytes_total'])}"
    left = found["seconds_left"]
    return told if left is None else f"{told}, {duration(left)} left"


def duration(seconds: float) -> str:
    """Say a time the way people read it."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
