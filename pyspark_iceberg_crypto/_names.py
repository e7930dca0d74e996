"""Names of tables and catalogs, as SQL has them."""

from __future__ import annotations

import re

from pyspark_iceberg_crypto.errors import ConfigurationError

SESSION_CATALOG = "spark_catalog"
PATH_CATALOG = "default_iceberg"  # Iceberg's name for the catalog of paths


def table_name(table: str) -> str:
    """Check that this can be the name of a table.

    Raises:
        ConfigurationError: it is empty, or no string.
    """
    if not isinstance(table, str) or not table.strip():
        raise ConfigurationError(f"{table!r} cannot be a table's name", "for example 'lake.db.t'")
    return table


def parts(name: str) -> list[str]:
    """Split a name into its parts, which may be quoted as in SQL."""
    found = re.findall(r"`(?:[^`]|``)*`|[^.`]+", name)
    return [_unquoted(part) for part in found] or [name]


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def is_whole(target: str) -> bool:
    """Return whether a name is that of a catalog ("lake"), or of all tables of a namespace ("lake.db.*")."""
    return not is_path(target) and (len(parts(target)) == 1 or target.endswith(".*"))


def quoted(part: str) -> str:
    """Return a part of a name as an identifier of SQL, whatever is in it."""
    return "`" + part.replace("`", "``") + "`"


def is_path(target: str) -> bool:
    """Return whether a name is the path of a table."""
    return target.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:/", target) is not None
