"""The profile: catalogs and their settings, from a YAML file and from environment variables."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pyspark_iceberg_crypto.cli._options import kms_of
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.jvm._launch import split
from pyspark_iceberg_crypto.kms import Kms
from pyspark_iceberg_crypto.settings import holds_secret

NAME = "iceberg-crypto.yaml"
CONFIG = "ICEBERG_CRYPTO_CONFIG"
PREFIX = "ICEBERG_CRYPTO_CATALOGS__"
SECTIONS = ("catalogs", "spark", "packages")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Catalog:
    """A catalog of the profile.

    Attributes:
        properties: its properties, by Iceberg's names and ours.
        kms: where its master keys are; None: its properties say so, or the command line.
        packages: Maven coordinates that it needs.
    """

    properties: dict[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    kms: Kms | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    """What the file and the environment say.

    Attributes:
        file: the file; None if there is no such file.
        texts: the settings of each catalog by their names, as they stand: references are not followed.
        spark: Spark's settings.
        packages: Maven coordinates that every session gets.
    """

    file: Path | None = None
    texts: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    spark: dict[str, str] = field(default_factory=dict, repr=False)
    packages: tuple[str, ...] = ()

    def catalog(self, name: str) -> Catalog:
        """Return a catalog; an empty one if the profile has none of this name.

        Raises:
            ConfigurationError: it refers to an environment variable that is not set, or its KMS refuses a setting.
        """
        texts = self.texts.get(name, {})
        where = f"catalog {name} of {self.file or 'the environment'}"
        values = {key: _followed(text, f"{key} of {where}") for key, text in texts.items()}
        packages = tuple(split(values.pop("packages", "")))
        kms = {k.removeprefix("kms."): values.pop(k) for k in list(values) if k.startswith("kms.")}
        return Catalog(values, kms_of(kms, where) if kms else None, packages)


def default_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the profile is, unless --config says otherwise."""
    home = environment.get("XDG_CONFIG_HOME") or ""
    return (Path(home) if os.path.isabs(home) else Path.home() / ".config") / NAME  # noqa: PTH117


def load(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Profile:
    """Read the profile.

    Args:
        file: its file, which has to be there; None: that of ICEBERG_CRYPTO_CONFIG, which has to be there too, or
            else `default_file`, if there is one.
        environment: variables such as ICEBERG_CRYPTO_CATALOGS__LAKE__URI, which override the file. As with
            pyiceberg, two underscores stand for a dot, and one within a name for a hyphen.

    Raises:
        ConfigurationError: the file cannot be read, is not a profile, may be written by others, or holds a secret
            that others may read.
    """
    named = file or (Path(environment[CONFIG]) if environment.get(CONFIG) else None)
    path = named or default_file(environment)
    found: dict[str, Any] = {}
    if named is not None or path.is_file():
        found = _read(path)
    catalogs = {name: _flat(of) for name, of in found.get("catalogs", {}).items()}
    spark = _flat(found.get("spark", {}))
    if path.is_file():
        _refuse_what_others_may_write(path)
        _refuse_what_others_may_read(path, {**catalogs, "spark": spark})
    for variable, value in environment.items():
        name, _, key = variable.removeprefix(PREFIX).partition("__")
        if variable.startswith(PREFIX) and key:
            setting = key.lower().replace("__", ".").replace("_", "-")
            catalogs.setdefault(name.lower(), {})[setting] = value
    packages = found.get("packages", "")
    return Profile(
        path if found else None,
        catalogs,
        {key: _followed(value, f"{key} of {path}") for key, value in spark.items()},
        tuple(packages if isinstance(packages, list) else split(packages)),
    )


def _read(path: Path) -> dict[str, Any]:
    hint = "see docs/cli.md for an example"
    try:
        # BaseLoader: every value is text, as properties are.
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the profile {path} cannot be read: {error}", "check its path and its mode"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigurationError(f"the profile {path} is not YAML{line}", hint) from error
    if found in (None, ""):
        return {}
    if not isinstance(found, dict):
        raise ConfigurationError(f"the profile {path} has no sections", hint)
    for section, value in found.items():
        if section not in SECTIONS:
            said = f"the profile {path} has an unknown section {section!r}"
            raise ConfigurationError(said, f"the sections are {', '.join(SECTIONS)}")
        nested = value.values() if section == "catalogs" and isinstance(value, dict) else [value]
        if section == "packages":
            fits = isinstance(value, (list, str))
        else:
            fits = isinstance(value, dict) and all(isinstance(one, dict) for one in nested)
        if not fits:
            raise ConfigurationError(
                f"section {section} of the profile {path} has no settings", hint
            )
    return found


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Join the names of nested settings by dots, and the values of a list by commas."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = (
                ",".join(map(str, value)) if isinstance(value, list) else str(value)
            )
    return found


def _followed(text: str, where: str) -> str:
    """Put the values of environment variables in place of references such as ${NAME}."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ConfigurationError(
                f"{where} refers to the environment variable {found[1]}, which is not set",
                f"export {found[1]}=...",
            )
        return os.environ[found[1]]

    return _REFERENCE.sub(value, text)


def _refuse_what_others_may_write(path: Path) -> None:
    """Refuse a file in which others may name another KMS or server, which then gets this user's tokens."""
    found = path.stat()
    is_others = found.st_uid not in (0, os.getuid())
    writable = stat.S_IWOTH if _is_own_group(found.st_gid) else stat.S_IWGRP | stat.S_IWOTH
    if is_others or found.st_mode & writable:
        raise ConfigurationError(
            f"others can write the profile {path}",
            f"check its content, then own it and chmod go-w {path}",
        )


def _is_own_group(number: int) -> bool:
    """Return whether a group is the user's alone, by its name, as Debian and Red Hat make them."""
    try:
        return grp.getgrgid(number).gr_name == pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        return False


def _refuse_what_others_may_read(path: Path, sections: dict[str, dict[str, str]]) -> None:
    if not path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return
    for section, settings in sections.items():
        for key, value in settings.items():
            if holds_secret(key, value) and value and not _REFERENCE.search(value):
                raise ConfigurationError(
                    f"the profile {path} holds a secret, {key} of {section}, and others can read the file",
                    f"write ${{NAME}} for the value of an environment variable, or chmod 600 {path}",
                )
