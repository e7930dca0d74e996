"""Shows the progress of a long call: with Rich in a terminal, as lines of text in a notebook."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pyspark_iceberg_crypto.jvm import _connect, _jvm
from pyspark_iceberg_crypto.jvm._typed import UNTYPED
from pyspark_iceberg_crypto.reports._text import plural, size, visible

_EVERY_SECONDS = 0.5
_LINE_EVERY_SECONDS = 10.0


def is_wanted(progress: bool | None) -> bool:
    """Return whether to show it: as asked for, otherwise if a person is watching."""
    return progress if progress is not None else sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Return whether this runs in a notebook, where stderr is no terminal but a person reads it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def shown(title: str, ask: Callable[[], str]) -> Iterator[None]:
    """Show progress on stderr while the block runs.

    Args:
        title: what it is done to.
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
def showing(spark: SparkSession, title: str, progress: bool | None) -> Iterator[Any]:
    """Show progress on stderr, if it is wanted, while the block runs.

    Yields:
        the JVM's Progress, which the call in the block is given, or None: no client of Spark Connect hears of it.
    """
    if _connect.is_connect(spark) or not is_wanted(progress):
        yield None
        return
    told = _jvm.call(spark, "progress")
    with shown(title, told.json):
        yield told


def run(
    spark: SparkSession, title: str, progress: bool | None, operation: str, **given: Any
) -> Any:
    """Do an operation as `_jvm.run` does, and show its progress.

    Args:
        spark: the session.
        title: what it is done to.
        progress: whether to show it; None: if a person is watching.
        operation: its name.
        given: its arguments.
    """
    with showing(spark, title, progress) as told:
        return _jvm.run(spark, operation, progress=told, **given)


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
    console = Console(stderr=True, highlight=False)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while not done.wait(_EVERY_SECONDS):
            if found := _told(ask):
                line = Table.grid(padding=(0, 1))
                bar = ProgressBar(found["total"] or None, found["done"], width=console.width // 4)
                line.add_row(bar, amount(found))
                live.update(Group(Text(f"{title}: {place(found)}"), line), refresh=True)


def _as_lines(title: str, ask: Callable[[], str], done: threading.Event) -> None:
    while not done.wait(_LINE_EVERY_SECONDS):
        if found := _told(ask):
            sys.stderr.write(f"{title}: {place(found)}, {amount(found)}\n")
            sys.stderr.flush()


def place(found: dict[str, Any]) -> str:
    """Say which step it is, and of many tables which one: 3 of 40 tables, lake.db.t: manifests."""
    if found["table"] is None:
        return str(found["step"])
    total = found["tables_total"]
    number = min(found["tables_done"] + 1, total)  # after the last one, it is still named
    return f"{number:,} of {plural(total, 'table')}, {visible(found['table'])}: {found['step']}"


def amount(found: dict[str, Any]) -> str:
    """Say how far the step is."""
    thing = found["unit"].removesuffix("s")
    if not found["total"]:
        return plural(found["done"], thing)
    told = f"{found['done']:,} of {plural(found['total'], thing)}"
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
