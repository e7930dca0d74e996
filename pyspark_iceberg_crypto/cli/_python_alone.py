"""Commands that do without Spark: their catalogs and tables, reached from Python (docs/verification.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli import _session, _shared
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.evidence._evidence import TableEvidence, VerifyTablesReport
from pyspark_iceberg_crypto.reports._text import plural, size, visible


def _has_spark() -> bool:
    try:
        import_module("pyspark")
    except ModuleNotFoundError:
        return False
    return True


HAS_SPARK = _has_spark()

option = click.option(
    "--without-spark",
    is_flag=True,
    default=not HAS_SPARK,
    help="Use Python alone, without Spark and Java; needs pyspark-iceberg-crypto[reader]. Where PySpark is not "
    "installed, this is the default.",
)


class Catalog:
    """A catalog of the profile, as the command line changes it.

    Attributes:
        name: its name.
        properties: its properties, as Spark's catalog has them, with those of the KMS.
    """

    def __init__(self, name: str) -> None:
        """Read the profile.

        Raises:
            ConfigurationError: there is no catalog of this name, or a setting is wrong.
        """
        from pyspark_iceberg_crypto.cli import _profile

        given = click.get_current_context().find_object(_session.Given) or _session.Given()
        if given.conf:
            raise _shared.CommandLineError(
                "--conf is for Spark", "leave it out, or --without-spark"
            )
        profile = _profile.load(given.config)
        wanted = _shared.pairs(given.catalog_conf)
        if name not in profile.texts and not wanted and given.kms is None:
            has = ", ".join(profile.texts) or "none"
            raise ConfigurationError(
                f"There is no catalog {name!r} to be used without Spark; the profile has: {has}",
                "check its name, or set it up: in the profile (docs/cli.md) or by --catalog-conf type=...",
            )
        given_kms = given.kms() if given.kms is not None else None
        properties, kms = _session.changed(profile.catalog(name), wanted, given_kms)
        self.name = name
        self.properties = {**(kms.properties() if kms is not None else {}), **properties}

    def opened(self) -> Any:
        """Return PyIceberg's catalog, or the warehouse of a Hadoop catalog."""
        from pyspark_iceberg_crypto.reader._catalogs import catalog_of

        return catalog_of(self.name, self.properties)


def place_of(target: str) -> dict[str, Any]:
    """Return the arguments of `open_table` for a table that is named on the command line, and its name."""
    if _names.is_path(target):
        return {"catalog": target, "properties": Catalog("lake").properties, "name": target}
    catalog, *identifier = _full_name(target)
    return _of_catalog(Catalog(catalog), tuple(identifier), target)


def _full_name(target: str) -> list[str]:
    parts: list[str] = _names.parts(target)
    if len(parts) < 3:
        raise _shared.CommandLineError(
            f"{target} is not the full name of a table",
            "give it with its catalog, such as lake.db.t, or its path",
        )
    return parts


def _of_catalog(catalog: Catalog, identifier: tuple[str, ...], name: str) -> dict[str, Any]:
    opened = catalog.opened()
    table = ".".join(identifier) if isinstance(opened, str) else identifier
    return {"catalog": opened, "identifier": table, "properties": catalog.properties, "name": name}


def verify(targets: Sequence[str], options: dict[str, Any]) -> Any:
    """Verify tables.

    Raises:
        CommandLineError: an option needs Spark.
    """
    _refuse_what_needs_spark(options)
    asked = {name: options[name] for name in ("structure", "deep", "all_snapshots")}
    return _verified(targets, asked)


def sign(report: Any, target: str, key_id: str, catalog: str | None) -> Any:
    """Sign their report, by the KMS of a catalog: that of the first target, if none is named."""
    from pyspark_iceberg_crypto.reader import sign_report

    name = catalog or ("lake" if _names.is_path(target) else _names.parts(target)[0])
    return sign_report(report, key_id, properties=Catalog(name).properties)


def _verified(targets: Sequence[str], asked: dict[str, Any]) -> TableEvidence | VerifyTablesReport:
    if len(targets) == 1 and not _names.is_whole(targets[0]):
        return _one(targets[0], place_of(targets[0]), asked)
    for target in targets:
        if not (_names.is_whole(target) or _names.is_path(target)):
            _full_name(target)  # before the first is verified, which may take a night
    found = VerifyTablesReport(", ".join(targets), [], [], [])
    for target in targets:
        try:
            for name, place in _tables(target):
                try:
                    found.reports.append(_one(name, place, asked))
                except Exception as error:  # noqa: BLE001 (of one table; the others are still to be checked)
                    found.not_checked.append(_left(name, error))
        except _shared.CommandLineError:  # of all
            raise
        except Exception as error:  # noqa: BLE001 (of one target)
            found.not_checked.append(_left(target, error))
    return replace(found)


def _left(name: str, error: Exception) -> dict[str, str]:
    problem, hint = _shared.plain(error)
    return {"table": name, "problem": problem, "hint": hint}


def _tables(target: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Go through the tables that a target names: itself, those of a namespace, or of a catalog."""
    if not _names.is_whole(target):
        yield target, place_of(target)
        return
    first, *namespace = _names.parts(target.removesuffix(".*"))
    catalog = Catalog(first)
    opened = catalog.opened()
    if isinstance(opened, str):
        raise ConfigurationError(
            f"The tables of {target} cannot be listed without Spark: it is a Hadoop catalog",
            "name the tables, such as lake.db.t",
        )
    pending = [tuple(namespace)]
    while pending:
        within = pending.pop()
        pending += opened.list_namespaces(within)
        for identifier in opened.list_tables(within) if within else ():
            name = ".".join([first, *map(_quoted, identifier)])
            yield name, _of_catalog(catalog, identifier, name)


def _quoted(part: str) -> str:
    return part if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", part) else _names.quoted(part)


def _one(name: str, place: dict[str, Any], asked: dict[str, Any]) -> TableEvidence:
    from pyspark_iceberg_crypto.reader import verify_table

    with _progress(name) as told:
        return verify_table(**place, **asked, progress=told)


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    """Show progress on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True, highlight=False).status(visible(name)) as status:

        def tell(step: str, files: int, count: int) -> None:
            status.update(f"{visible(name)}: {step}, {plural(files, 'file')}, {size(count)}")

        yield tell


def _refuse_what_needs_spark(options: dict[str, Any]) -> None:
    """Raise an error for options that would silently have no effect."""
    known = ("structure", "deep", "all_snapshots")
    defaults = {"sample": 1.0, "recheck": 0.01}
    for name, value in options.items():
        if name not in known and value not in (defaults.get(name), None, False, ()):
            flag = "except" if name == "except_tables" else name.replace("_", "-")
            raise _shared.CommandLineError(
                f"--{flag} needs Spark", "leave it out, or --without-spark, and install PySpark"
            )


def inspect(path: str, asked: dict[str, Any]) -> Any:
    """Inspect a file; arguments as of `inspect_file` with Spark.

    Raises:
        CommandLineError: an option needs Spark.
    """
    from pyspark_iceberg_crypto.reader import inspect_file

    if asked.get("pages"):
        raise _shared.CommandLineError("--pages needs Spark", "leave it out, or --without-spark")
    given = {name: value for name, value in asked.items() if name in ("key", "decrypt_to")}
    if "table" in asked:
        place = place_of(asked["table"])
        del place["name"]
        given |= place
    elif not Path(path).exists():
        given["properties"] = _storage()
    return inspect_file(path, **given)


def _storage() -> dict[str, str]:
    """Return the settings of storage that the command line has."""
    given = click.get_current_context().find_object(_session.Given) or _session.Given()
    return _shared.pairs(given.catalog_conf)


def check_report(catalog: str, file: Path, key_id: str | None) -> Any:
    """Check a signed report; arguments as of `check_report` with Spark."""
    from pyspark_iceberg_crypto.reader import check_report as check

    return check(file, key_id, properties=Catalog(catalog).properties, catalog=catalog)
