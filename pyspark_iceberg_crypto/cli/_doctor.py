"""``doctor``: can this Spark use its master keys, and if not, what is wrong."""

from __future__ import annotations

import sys

import click

from pyspark_iceberg_crypto.cli import _session, _shared
from pyspark_iceberg_crypto.doctor import DoctorReport, diagnose, not_started
from pyspark_iceberg_crypto.errors import JarMissingError


@_session.command()
@click.option("--catalog", default="lake", show_default=True, help="The catalog's name.")
@click.option(
    "--key-id",
    "key_ids",
    multiple=True,
    help="A master key to try. Can be repeated. Default: the key that the catalog gives to new "
    "tables (table-default.encryption.key-id), if it gives one.",
)
@click.option(
    "--tables",
    is_flag=False,
    flag_value="*",
    metavar="[NAME]",
    help="Also look at tables, for what is wrong with them: all of the catalog, or those of a namespace "
    "(lake.db), or one (lake.db.t).",
)
def doctor(
    catalog: str,
    key_ids: tuple[str, ...],
    tables: str | None,
    output: str,
) -> None:
    """Check each step from Spark to its master keys, and say what to do about one that fails.

    Starts Spark with the catalog as a job would, and has each key wrap and unwrap a random trial key: Java
    and jars, settings, network, login, permission, key, round trip. Writes nothing and needs no table.

    With --tables, it also says which tables are plaintext although they have a key id, lost it, or have no KEK;
    whose metadata is refused or not authenticated; which cannot be loaded: the worst first. Without
    --key-id it then tries the master keys of these tables, ten at most.

    \b
    Examples:
      iceberg-crypto doctor --key-id sales
      iceberg-crypto doctor --key-id sales \\
          --catalog-conf type=hadoop \\
          --catalog-conf warehouse=/tmp/warehouse \\
          --kms keystore --path keys.p12 --password-env PW
      iceberg-crypto doctor --tables lake.db

    Exit codes: 0 all is well, 1 a step failed or a table needs repair, 2 not everything could be checked, 64 the
    command is wrong.
    """  # noqa: D301 (click's mark for lines to leave as they are)
    with _shared.errors_told():
        found = _examine(catalog, key_ids, tables)
    _shared.show_report(found, output)
    sys.exit(found.exit_code)


def _examine(catalog: str, key_ids: tuple[str, ...], tables: str | None) -> DoctorReport:
    try:
        with _session.session(catalog) as spark:
            return diagnose(spark, catalog, key_ids=key_ids, tables=tables)
    except (_session.SparkNotStartedError, JarMissingError) as error:
        return not_started(catalog, error)
