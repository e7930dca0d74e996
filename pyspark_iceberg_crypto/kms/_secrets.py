"""Secrets, and files that must be their owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pyspark_iceberg_crypto.errors import ConfigurationError


def read_text(
    env: str | None, path: Path, what: str, *, projected: bool = False, hint: str = ""
) -> str:
    """Read what an environment variable holds, as it stands, or else a file.

    Args:
        env: the variable's name; one that is not set is empty.
        path: the file, when no variable is named.
        what: what it is, for the error.
        projected: whether others may read the file where kubelet wrote it, see `require_private`.
        hint: more for the error's hint.

    Raises:
        ConfigurationError: others may read the file.
        OSError: it cannot be read.
        UnicodeDecodeError: it is not text.
    """
    if env is not None:
        return os.environ.get(env, "")
    require_private(path, f"{what} file", projected=projected, hint=hint)
    return path.read_text(encoding="utf-8")


def read_secret(
    env: str | None, file: str | os.PathLike[str] | None, owner: str, name: str
) -> tuple[str, str]:
    """Read a secret as it stands.

    Args:
        env: the environment variable that holds it.
        file: instead, the file that holds it.
        owner: whose it is, for the error: "the keystore's".
        name: what it is, for the error: "password".

    Returns:
        The secret, and in words where it is.

    Raises:
        ConfigurationError: the file cannot be read, or others may read it.
    """
    path = Path(file or "").absolute()
    where = f"the file {path}" if env is None else f"the environment variable {env}"
    try:
        return read_text(env, path, f"{owner} {name}"), where
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{owner} {name} cannot be read from {where}: {error}", f"write the {name} into it"
        ) from error


def missing(owner: str, name: str, where: str) -> ConfigurationError:
    """Make the error for a secret that is empty."""
    return ConfigurationError(
        f"{owner} {name} is missing: {where} is not set or empty", "set it before calling this"
    )


def require_private(path: Path, what: str, *, projected: bool = False, hint: str = "") -> None:
    """Refuse a file that others may read or change, as ssh does and as the JVM's side will.

    The group may read a file that another user owns, because that is how Kubernetes mounts secrets.

    Args:
        path: the file; a link counts as what it leads to.
        what: what the file is, for the error.
        projected: others may read it in a folder that kubelet writes, recognized by a link ``..data``: kubelet
            makes a service account's token readable to everyone in the pod, and nobody else can reach it.
        hint: more for the error's hint.

    Raises:
        ConfigurationError: group or others may read or write it.
        OSError: it cannot be looked at.
    """
    found = path.stat()
    too_much = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
    if found.st_uid != os.geteuid():
        too_much &= ~stat.S_IRGRP
    if projected and path.absolute().with_name("..data").is_symlink():
        too_much &= ~(stat.S_IRGRP | stat.S_IROTH)
    if found.st_mode & too_much:
        raise ConfigurationError(
            f"{what} {path} is open to others besides its owner ({stat.filemode(found.st_mode)})",
            f"make it private: chmod 600 {path}{hint}",
        )


def require_unwritable(path: Path, name: str) -> None:
    """Refuse a file that decides who logs in, when others may write it. They may read it.

    Args:
        path: the file; a link counts as what it leads to. One that is not there is its reader's matter.
        name: what names it, for the error.

    Raises:
        ConfigurationError: group or others may write it.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            f"File {path}, which {name} names, may be changed by others besides its owner ({stat.filemode(mode)}): "
            "they could choose the login",
            f"remove the permission: chmod go-w {path}",
        )
