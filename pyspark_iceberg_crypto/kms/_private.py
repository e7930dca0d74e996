"""Files that must be their owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pyspark_iceberg_crypto.errors import ConfigurationError


def require_private(path: Path, what: str) -> None:
    """Refuse a file that others may read or change, as ssh does and as the JVM's side will.

    Group may read a file that another user owns: Kubernetes mounts secrets so, and in no other way.

    Args:
        path: the file; a link counts as what it leads to.
        what: what the file is, for the error.

    Raises:
        ConfigurationError: group or others may read or write it.
        OSError: it cannot be looked at.
    """
    found = path.stat()
    too_much = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
    if found.st_uid != os.geteuid():
        too_much &= ~stat.S_IRGRP
    if found.st_mode & too_much:
        raise ConfigurationError(
            f"{what} {path} is open to others than its owner ({stat.filemode(found.st_mode)})",
            f"make it private: chmod 600 {path}",
        )
