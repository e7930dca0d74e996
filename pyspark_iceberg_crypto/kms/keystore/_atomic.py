"""Files that appear and change as a whole or not at all, even if the process or the machine stops half-way."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pyspark_iceberg_crypto.errors import ConfigurationError


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield the path of an unfinished file on the target's file system, so that finishing it is a move, not a copy.

    The file is in a folder of its own that only its owner can enter.
    """
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as folder:
        yield Path(folder) / target.name


@contextmanager
def locked(target: Path) -> Iterator[os.stat_result]:
    """Wait for, and hold, the right to replace a file.

    The lock is on the file itself, so that nothing is left behind. If the file was replaced in the
    meantime, the wait continues for the new one.

    Returns:
        The file's attributes.

    Raises:
        ConfigurationError: there is no such file.
    """
    with _hold(target) as handle:
        yield os.fstat(handle.fileno())


def _hold(target: Path) -> BinaryIO:
    while True:
        try:
            handle = target.open("rb")
        except FileNotFoundError as error:
            raise ConfigurationError(f"there is no file {target}", "create it first") from error
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle.fileno()), target.stat()):
                return handle
        handle.close()


def place(unfinished: Path, target: Path) -> None:
    """Move a finished file into place, never over another.

    On a file system without hard links it takes the name first, with an empty file: a process that
    stops just then leaves that.

    Raises:
        FileExistsError: there is another.
    """
    _sync(unfinished)
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            unfinished.replace(target)
        except OSError:
            target.unlink(missing_ok=True)
            raise
    _sync(target.parent)


def replace(unfinished: Path, target: Path) -> None:
    """Move a finished file over another."""
    _sync(unfinished)
    unfinished.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Have the file system write a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
