"""A catalog of PyIceberg from the properties of a catalog of Spark, such as a profile has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_iceberg_crypto.errors import ConfigurationError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_TYPES = {"rest": "rest", "jdbc": "sql", "hive": "hive", "glue": "glue"}
_OF_CLASS = {
    "RESTCatalog": "rest",
    "JdbcCatalog": "jdbc",
    "HiveCatalog": "hive",
    "GlueCatalog": "glue",
    "HadoopCatalog": "hadoop",
}
# SQLAlchemy's drivers, by the name in a JDBC URI.
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg2", "mysql": "mysql+pymysql"}
_NOT_FOR_PYICEBERG = (
    *("type", "catalog-impl", "io-impl", "cache-enabled", "uri", "packages"),
    *("jdbc.user", "jdbc.password", "jdbc.schema-version", "default-namespace"),
)


def catalog_of(name: str, properties: Mapping[str, str]) -> Catalog | str:
    """Make the catalog that Spark's catalog of these properties is.

    Args:
        name: the catalog's name, which is part of each row of a JDBC catalog.
        properties: `type` or `catalog-impl`, `uri`, `warehouse` and so on, without `spark.sql.catalog.NAME.`

    Returns:
        For a Hadoop catalog the location of its warehouse, as `open_table` takes it.

    Raises:
        ConfigurationError: PyIceberg has no such catalog, or a property is missing.
    """
    kind = _kind(name, properties)
    if kind == "hadoop":
        return _required(name, properties, "warehouse")
    from pyiceberg.catalog import load_catalog

    given = {
        key: value
        for key, value in properties.items()
        if key not in _NOT_FOR_PYICEBERG and not key.startswith(("encryption.", "hadoop.", "kms."))
    }
    if kind == "jdbc":
        given["uri"] = _sqlalchemy(name, properties)
        given["init_catalog_tables"] = "false"
    elif "uri" in properties:
        given["uri"] = properties["uri"]
    try:
        return load_catalog(name, **{**given, "type": _TYPES[kind]})
    except (ImportError, ModuleNotFoundError) as error:
        raise ConfigurationError(
            f"Catalog {name} needs a library that is not installed: {error}",
            f"pip install 'pyiceberg[{ {'jdbc': 'sql-postgres'}.get(kind, kind) }]'",
        ) from error


def _kind(name: str, properties: Mapping[str, str]) -> str:
    """The type of a catalog, or of the one behind ours."""
    kind = properties.get("encryption.catalog-type", properties.get("type"))
    named = properties.get("encryption.catalog-impl", properties.get("catalog-impl", ""))
    kind = kind or _OF_CLASS.get(named.rpartition(".")[2]) or ("" if named else "hive")
    if kind.lower() not in (*_TYPES, "hadoop"):
        raise ConfigurationError(
            f"Catalog {name} is of type {kind or named}, which PyIceberg does not have",
            "Its tables are read with Spark. Catalogs that are read without are rest, jdbc, hadoop, hive and glue.",
        )
    return kind.lower()


def _sqlalchemy(name: str, properties: Mapping[str, str]) -> str:
    """The URI of a database as SQLAlchemy has it."""
    uri = _required(name, properties, "uri")
    found = re.fullmatch(r"jdbc:([a-z]+):(.*)", uri)
    if found is None or found[1] not in _DRIVERS:
        raise ConfigurationError(
            f"Catalog {name} has a database of {found[1] if found else 'an unknown kind'}, which is not read in Python",
            f"Databases that are: {', '.join(_DRIVERS)}.",
        )
    from sqlalchemy.engine import make_url

    if found[1] == "sqlite":
        return f"sqlite:///{found[2].removeprefix('file:').partition('?')[0]}"
    url = make_url(f"{_DRIVERS[found[1]]}:{found[2]}")
    user, password = properties.get("jdbc.user"), properties.get("jdbc.password")
    if user:
        url = url.set(username=user, password=password)
    return url.render_as_string(hide_password=False)


def _required(name: str, properties: Mapping[str, str], key: str) -> str:
    if not properties.get(key):
        raise ConfigurationError(
            f"Property {key} of catalog {name} is missing",
            "Set it where the catalog is configured.",
        )
    return properties[key]
