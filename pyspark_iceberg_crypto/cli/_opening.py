"""Commands that open a table in Python alone, whether or not Spark is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.cli import _profile, _session, _shared
from pyspark_iceberg_crypto.cli._options import made_kms
from pyspark_iceberg_crypto.errors import ConfigurationError


def place(
    table: str, wanted: dict[str, str], config: Path | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of `open_table` for a table that is named on the command line.

    Args:
        table: its full name, or its path.
        wanted: properties of the catalog that override the profile's.
        config: the profile; None: the default one.
        options: those of the KMS.

    Raises:
        CommandLineError: it is not a table's name.
        ConfigurationError: there is no such catalog, or a setting is wrong.
    """
    kms = made_kms(options) if options.get("kms") else None
    if _names.is_path(table):
        return {"catalog": table, "kms": kms, "properties": wanted}
    catalog, *rest = _names.parts(table)
    if len(rest) < 2:
        raise _shared.CommandLineError(
            f"{table} is not a table's name", "give one such as lake.db.t, or a path"
        )
    own = _profile.load(config).catalog(catalog)
    properties, kms = _session.changed(own, wanted, kms)
    if not properties:
        raise ConfigurationError(
            f"There is no catalog {catalog!r} in the profile",
            "check its name, or set it up: in the profile (docs/cli.md), or by --catalog-conf type=...",
        )
    from pyspark_iceberg_crypto.reader._catalogs import catalog_of

    made = catalog_of(catalog, properties)
    return {"catalog": made, "identifier": tuple(rest), "kms": kms, "properties": properties}
