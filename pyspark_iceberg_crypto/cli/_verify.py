"""``verify``: the proof, for tables, namespaces, catalogs and folders."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import click
from rich.text import Text

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto._names import SESSION_CATALOG
from pyspark_iceberg_crypto.cli import _python_alone, _session, _shared
from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    TableNotFoundError,
)
from pyspark_iceberg_crypto.evidence._evidence import VerifyTablesReport
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._text import plural, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
if _python_alone.HAS_SPARK:
    from pyspark_iceberg_crypto.jvm import _jvm
    from pyspark_iceberg_crypto.verbs.keys import encryption_keys
    from pyspark_iceberg_crypto.verbs.verify import VerifyReport, verify_table
    from pyspark_iceberg_crypto.verbs.verify_many import verify_catalog, verify_folder


@_session.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--structure",
    is_flag=True,
    help="Check each file's header, block layout, footer and length, not its first bytes only.",
)
@click.option(
    "--deep", is_flag=True, help="Check every byte of each file, by its authentication tags."
)
@click.option(
    "--sample",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    help="Check this share of data and delete files, such as 0.01.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    help="Choose another sample. The same seed chooses the same files.",
)
@click.option(
    "--all-snapshots",
    is_flag=True,
    help="Check the files of all snapshots, not only of the current one, branches and tags.",
)
@click.option("--strays", is_flag=True, help="Also look for files that no metadata reaches.")
@click.option(
    "--except",
    "except_tables",
    multiple=True,
    metavar="TABLE",
    help="Leave out this table (lake.db.t) of a catalog or a namespace, because it should be plaintext. The report "
    "lists it. Can be repeated.",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    help="Record results in this folder, and continue from them. With --since only for tables without a record.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    help="Do not read again what this signed report (JSON) vouches for, which was made with --resume.",
)
@click.option("--since-key-id", metavar="KEY_ID", help="The master key that must have signed it.")
@click.option(
    "--recheck",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.01,
    show_default=True,
    help="Check this share of those files again.",
)
@click.option(
    "--folder", is_flag=True, help="The TARGETs are folders. No catalog or key is needed."
)
@_python_alone.option
@click.option("--html", type=click.Path(path_type=Path), help="Write a page for auditors.")
@click.option("--json-file", type=click.Path(path_type=Path), help="Write the report as JSON.")
@click.option("--sign-with", metavar="KEY_ID", help="Sign the report with this master key.")
@click.option(
    "--catalog",
    help="The catalog whose KMS has that key. Default: that of the first TARGET, or lake.",
)
def verify(
    targets: tuple[str, ...],
    folder: bool,
    html: Path | None,
    json_file: Path | None,
    sign_with: str | None,
    catalog: str | None,
    output: str,
    without_spark: bool,
    **options: Any,
) -> None:
    """Check that every file of tables or folders is encrypted.

    A TARGET is a table (lake.db.t), a namespace (lake.db or lake.db.*), a catalog (lake) or, with --folder, a
    path or URI. A name of two parts that is not a namespace, such as db.t, is a table of Spark's own catalog,
    spark_catalog; a name that is both is refused. --catalog-conf is for all named catalogs.

    \b
    Examples:
      iceberg-crypto verify lake.db.t --deep
      iceberg-crypto verify lake.db --sign-with k --html a.html
      iceberg-crypto verify lake --except lake.web.zip_codes
      iceberg-crypto verify lake.db.t --since report.json --since-key-id audit
      iceberg-crypto verify --folder s3://bucket/orders
      iceberg-crypto verify lake.db.t --deep --without-spark

    Exit codes: 0 no problem was found, 1 a problem was found, 2 it could not all be checked, 64 the command is
    wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    if without_spark:
        with _shared.errors_told():
            found = _python_alone.verify(targets, {**options, "folder": folder})
            code = _tell(
                found,
                lambda key_id: _python_alone.sign(found, targets[0], key_id, catalog),
                (sign_with, html, json_file, output),
                options["since"],
            )
        sys.exit(code)
    names = [catalog or "lake"] if folder else _catalogs(targets)
    also = [catalog] if catalog and catalog not in names else []
    needed = [catalog] if catalog else [] if folder else _sure_catalogs(targets)
    with _shared.errors_told(), _session.session(names, also, needed) as spark:
        found = _verify(spark, targets, folder, options)
        code = _tell(
            found,
            lambda key_id: found.sign(
                spark, catalog or _first_catalog(targets, folder, found), key_id
            ),
            (sign_with, html, json_file, output),
            options["since"],
        )
    sys.exit(code)


def _tell(
    found: Any,
    sign: Callable[[str], Any],
    to: tuple[str | None, Path | None, Path | None, str],
    since: Path | None,
) -> int:
    """Sign a report, write it to files and show it, and say at the end what of that failed.

    The report that this one is based on is not replaced by one on which none could be based: without a signature, or
    with no table that is ok. That one is written beside it.

    Returns:
        The exit code: that of a problem, if there is one.
    """
    key_id, html, json_file, output = to
    failures: list[Exception] = []

    def attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except Exception as error:  # noqa: BLE001 (a verification may have taken a night)
            failures.append(error)

    report = found
    if key_id is not None:
        report = attempt(lambda: sign(key_id)) or found
    is_base = json_file is not None and since is not None and json_file.resolve() == since.resolve()
    why = "has no signature" if report is found else "" if _vouches(report) else "is not ok"
    if json_file is not None:
        file = json_file
        if is_base and why:
            file = json_file.with_name(f"{json_file.name}.not-ok")
            failures.append(
                ConfigurationError(
                    f"{json_file} is still the report of --since: the new one {why}",
                    f"read {file}; a report that is signed (--sign-with) and ok takes its place",
                )
            )
        attempt(lambda: _shared.write(file, report.to_json() + "\n"))
    if html is not None:
        attempt(lambda: _shared.write(html, report.to_html()))
    if output == "json":
        _shared.print_whole(report.to_json())
    else:
        _shared.show(_terminal.layout(report))
    for failure in failures:
        _shared.say(failure)
    is_problem = report.exit_code == _shared.PROBLEM
    return report.exit_code if is_problem or not failures else _shared.UNCHECKED


def _vouches(report: VerifyReport | VerifyTablesReport) -> bool:
    """Whether another report can be based on this one, for a table at least."""
    reports = report.reports if isinstance(report, VerifyTablesReport) else [report]
    return any(one.ok for one in reports)


def _verify(
    spark: SparkSession, targets: tuple[str, ...], folder: bool, options: dict[str, Any]
) -> VerifyReport | VerifyTablesReport:
    if folder:
        _refuse_for_a_folder(options)
    names = options.pop("except_tables")
    if len(targets) == 1:
        if names:
            _require_many(spark, targets[0])
        return _one(spark, targets[0], folder, options, names)
    excepted = _excepted(spark, targets, names)
    found = VerifyTablesReport(", ".join(targets), [], [], [])
    for target in targets:
        try:
            its_own = _resumed_in_its_own(target, options)
            report = _one(spark, target, folder, its_own, excepted.get(target, ()))
            if isinstance(report, VerifyTablesReport):
                found.reports.extend(report.reports)
                found.not_checked.extend(report.not_checked)
                found.views.extend(report.views)
                found.left_out.extend(one for one in report.left_out if one not in found.left_out)
            else:
                found.reports.append(report)
        except Exception as error:  # noqa: BLE001 (of one target; the others are still to be checked)
            problem, hint = _shared.plain(error)
            found.not_checked.append({"table": target, "problem": problem, "hint": hint})
    return found


def _refuse_for_a_folder(options: dict[str, Any]) -> None:
    """Raise an error for options that would silently have no effect."""
    defaults = {
        "deep": (False, True),
        "sample": (1.0,),
        "seed": (0,),
        "recheck": (0.01,),
    }
    for name, value in options.items():
        if value not in defaults.get(name, (False, None, ())):
            option = "except" if name == "except_tables" else name.replace("_", "-")
            raise _shared.CommandLineError(
                f"--{option} is not for a folder",
                "the first bytes of each file in it are read, and with --deep the pages of Parquet files that have "
                "keys for columns; give a table for more",
            )


def _excepted(
    spark: SparkSession, targets: tuple[str, ...], names: tuple[str, ...]
) -> dict[str, list[str]]:
    """Return the tables to leave out of each target, after a check that all of them exist."""
    found: dict[str, list[str]] = {}
    for target in targets:
        within = _names.parts(target.removesuffix(".*"))
        found[target] = [name for name in names if _names.parts(name)[: len(within)] == within]
    for name in names:
        if not any(name in its_own for its_own in found.values()):
            raise _shared.CommandLineError(
                f"--except {name}: no TARGET has such a table",
                "give its full name, such as lake.db.t, and the catalog or the namespace as TARGET",
            )
    for target, its_own in found.items():
        if its_own:
            _require_many(spark, target)
            _jvm.run(spark, "select_tables", name=target, except_tables=its_own)
    return found


def _require_many(spark: SparkSession, target: str) -> None:
    """Raise an error if the target to leave tables out of is neither a catalog nor a namespace."""
    if not (_names.is_whole(target) or _is_namespace(spark, target)):
        raise _shared.CommandLineError(
            f"--except leaves out tables of a catalog or a namespace, and {target} is neither",
            "leave it out, or give the catalog or the namespace as TARGET",
        )


def _resumed_in_its_own(target: str, options: dict[str, Any]) -> dict[str, Any]:
    folder = options["resume"]
    return {**options, "resume": folder and f"{folder.rstrip('/')}/{quote_plus(target)}"}


def _one(
    spark: SparkSession,
    target: str,
    folder: bool,
    options: dict[str, Any],
    excepted: Sequence[str] = (),
) -> VerifyReport | VerifyTablesReport:
    """Verify a target.

    Args:
        spark: the session.
        target: a table, a namespace, a catalog or a folder.
        folder: whether it is a folder.
        options: see `verify_catalog`.
        excepted: tables to leave out of it.
    """
    if folder:
        with verify_folder(spark, target, deep=options["deep"]) as report:
            return report
    parts = _names.parts(target)
    is_whole = _names.is_whole(target)
    may_be_either = len(parts) == 2 and not is_whole
    if excepted or is_whole or (may_be_either and _is_namespace(spark, target)):
        if may_be_either:
            _refuse_what_is_a_table_too(spark, target, parts[0])
        found = verify_catalog(spark, target, **options, except_tables=excepted)
        return _with_all_keys(spark, found)
    # Spark would take a first part that is the name of a catalog for one
    is_sparks = len(parts) == 2 and _is_catalog(spark, parts[0])
    name = f"{SESSION_CATALOG}.{target}" if is_sparks else target
    try:
        with verify_table(spark, name, **options) as report:
            return _with_keys(spark, [report])[0]
    except TableNotFoundError as error:
        if is_sparks and "is a view" not in error.message:
            raise TableNotFoundError(
                f"{target} is neither a namespace of catalog {parts[0]} nor a table of {SESSION_CATALOG}",
                "give a table with its catalog, such as lake.db.t, or a namespace that exists",
            ) from error
        if may_be_either or not _is_namespace(spark, target):
            raise
    return _with_all_keys(spark, verify_catalog(spark, target, **options))


def _refuse_what_is_a_table_too(spark: SparkSession, target: str, catalog: str) -> None:
    """Raise an error when a namespace may be meant, or a table of Spark's catalog: either would pass for the other."""
    name = f"{SESSION_CATALOG}.{target}"
    is_ours = spark.conf.get(f"spark.sql.catalog.{SESSION_CATALOG}", None) is not None
    if is_ours and catalog != SESSION_CATALOG and spark.catalog.tableExists(name):
        raise ConfigurationError(
            f"{target} is both a namespace of catalog {catalog} and a table of {SESSION_CATALOG}",
            f"give {name} for the table, or {target}.* for the namespace",
        )


def _with_keys(spark: SparkSession, reports: list[VerifyReport]) -> list[VerifyReport]:
    """Add the tables' keys where they can be had: whether their files are encrypted does not depend on that."""
    found, failed = [], []
    for report in reports:
        keys: Sequence[Any] = ()
        try:
            keys = encryption_keys(spark, report.table).keys if report.key_id is not None else ()
        except Exception as error:  # noqa: BLE001 (the verification may have taken hours)
            failed.append((report.table, _shared.told(error)[0]))
        found.append(report.with_keys(keys))
    if failed:
        (table, problem), others = failed[0], len(failed) - 1
        also = f", nor those of {plural(others, 'other table')}" if others else ""
        said = f"note: the report does not list the keys of {table}{also}: {problem}"
        _shared.show_error(Text(visible(said), "yellow"))
    return found


def _with_all_keys(spark: SparkSession, found: VerifyTablesReport) -> VerifyTablesReport:
    return replace(found, reports=_with_keys(spark, found.reports))


def _is_namespace(spark: SparkSession, target: str) -> bool:
    """Return whether a name is that of a namespace in a catalog of the session, which the name begins with."""
    return _is_catalog(spark, _names.parts(target)[0]) and spark.catalog.databaseExists(target)


def _is_catalog(spark: SparkSession, name: str) -> bool:
    return name == SESSION_CATALOG or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def _catalogs(targets: tuple[str, ...]) -> list[str]:
    """Return the catalogs that targets may be of: of a name of two parts, two."""
    found = []
    for target in targets:
        parts = _names.parts(target)
        is_either = len(parts) == 2 and not _names.is_whole(target)
        found += [SESSION_CATALOG] if is_either else []
        found += parts[:1] if re.fullmatch(r"[\w-]+", parts[0]) or not is_either else []
    return list(dict.fromkeys(found))


def _sure_catalogs(targets: tuple[str, ...]) -> list[str]:
    """Return the catalogs that targets name: the first part of a name of two may be a namespace."""
    named = [(_names.parts(target), _names.is_whole(target)) for target in targets]
    return [parts[0] for parts, is_whole in named if len(parts) != 2 or is_whole]


def _first_catalog(
    targets: tuple[str, ...], folder: bool, report: VerifyReport | VerifyTablesReport
) -> str:
    """Return the catalog of the first target, as it was found to be."""
    if folder:
        return "lake"
    parts = _names.parts(targets[0])
    is_table = isinstance(report, VerifyReport) and len(parts) == 2
    return SESSION_CATALOG if is_table else parts[0]
