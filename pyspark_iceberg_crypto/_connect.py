"""The way to a Spark Connect server, which has no Py4J: what PythonApi does is asked for by its procedures, in SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

from pyspark_iceberg_crypto._typed import typed_errors
from pyspark_iceberg_crypto.errors import SparkConnectError, first_line

Row = dict[str, Any]
_UNCHECKED = "nothing is known about it"  # a finding of repair_table

NEEDS_JVM = "a Spark Connect session has no JVM that Python could call"
SERVER_SETTINGS = (
    "the server has to be started with this project's jar and with the catalog; "
    "spark_conf(...) returns the settings, for start-connect-server.sh --conf"
)


def is_connect(spark: object) -> bool:
    """Tell whether this is a session of Spark Connect."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(spark).__mro__)


@dataclass(frozen=True)
class Verified:
    """Stands for the JVM's VerifyResult, without its list of files."""

    report: str

    def json(self) -> str:
        """Return the report."""
        return self.report

    def files(self) -> Any:
        """Refuse: the list is in the server."""
        raise SparkConnectError(
            "the list of files stays in the server of Spark Connect",
            "problems and counts are in the report; for the list verify where the driver is",
        )

    def close(self) -> None:
        """Do nothing: the server has closed it."""


def _row(rows: list[Row]) -> str:
    return json.dumps(rows[0])


def _purged(rows: list[Row]) -> str:
    head, *files = rows
    whole = {name: head[name] for name in ("table", "message", "files", "bytes")}
    paths = [row["path"] for row in files]
    return json.dumps({**whole, "committed": head["deleted"], "paths": paths})


def _repaired(rows: list[Row]) -> str:
    return json.dumps(
        {"complete": all(row["finding"] != _UNCHECKED for row in rows), "findings": rows}
    )


def _verified(rows: list[Row]) -> Verified:
    return Verified(next(row["report"] for row in rows if row["kind"] == "table"))


# For a method of PythonApi: its procedure, the parameters for the arguments after the session (None: left out), and
# what makes the method's answer of the rows.
_PROCEDURES: dict[str, tuple[str, Sequence[str | None], Callable[[list[Row]], Any]]] = {
    "decryptTable": ("decrypt_table", ("table", "allow_plaintext", None), _row),
    "encryptTable": ("encrypt_table", ("table", "key_id", "max_bytes", "dry_run", None), _row),
    "pruneEncryptionKeys": ("prune_encryption_keys", ("table", "dry_run"), _row),
    "purgePlaintext": ("purge_plaintext", ("table", "dry_run", None), _purged),
    "reencryptTable": ("reencrypt_table", ("table", "options", "dry_run"), _row),
    "repairTable": ("repair_table", ("table", "yes"), _repaired),
    "rotateKek": ("rotate_kek", ("table", "rewrap", "dry_run"), _row),
    "rotateMasterKey": (
        "rotate_master_key",
        ("table", "new_key_id", "from_catalog", "dry_run"),
        _row,
    ),
    "verifyTable": ("verify_encryption", ("table", "", None), _verified),
}


def call(spark: Any, method: str, *args: Any) -> Any:
    """Do what a method of PythonApi does, where a procedure does the same.

    Raises:
        SparkConnectError: none does, or the server has no such procedure.
        IcebergCryptoError: see ``typed_errors``.
    """
    if method not in _PROCEDURES:
        raise SparkConnectError(
            f"{NEEDS_JVM}, and no procedure does all that this function does",
            "call it where the driver is, in a session built without remote(); some of it SQL does, such as "
            "CALL lake.system.encryption_keys(table => 'db.t')",
        )
    procedure, names, answer = _PROCEDURES[method]
    given: dict[str, Any] = {}
    for name, value in zip(names, args, strict=True):
        if name == "":  # the options of a verification, in JSON
            given |= {**json.loads(value), "report": True}
        elif name == "max_bytes" and value is not None:
            given[name] = int(value)
        elif name == "options":
            given[name] = json.loads(value) or None
        elif name is not None:
            given[name] = value
    return answer(rows(spark, catalog_of(spark, str(args[0])), procedure, given))


def rows(spark: Any, catalog: str, procedure: str, given: dict[str, Any]) -> list[Row]:
    """Call a procedure of a catalog.

    Args:
        spark: the session.
        catalog: the catalog's name; it may be quoted as in SQL.
        procedure: the procedure's name.
        given: the arguments by their names; None: not given.

    Raises:
        SparkConnectError: the server has no such procedure.
        IcebergCryptoError: see ``typed_errors``.
    """
    parameters: list[str] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict):
            texts = {f"{name}{i}": text for i, text in enumerate(sum(value.items(), ()))}
            parameters.append(f"{name} => map({', '.join(f':{key}' for key in texts)})")
            values |= texts
        elif value is not None:
            parameters.append(f"{name} => :{name}")
            values[name] = value
    statement = f"CALL {_quoted(catalog)}.system.{procedure}({', '.join(parameters)})"
    with typed_errors():
        try:
            return [row.asDict() for row in spark.sql(statement, values).collect()]
        except PySparkException as error:
            if _is_unknown(error):
                raise SparkConnectError(
                    f"the server of Spark Connect has no {procedure} in {catalog}: {first_line(error)}",
                    SERVER_SETTINGS,
                ) from error
            raise


_UNKNOWN = ("PROCEDURE", "ROUTINE", "CATALOG")


def _is_unknown(error: PySparkException) -> bool:
    condition = error.getCondition() or ""
    return any(word in condition for word in _UNKNOWN) or "No such procedure" in str(error)


def catalog_of(spark: Any, table: str) -> str:
    """Return the name of a table's catalog: the first of three parts or more, or the current one."""
    parts = re.findall(r"`(?:[^`]|``)*`|[^.`]+", table)
    return parts[0] if len(parts) > 2 else str(spark.catalog.currentCatalog())


def _quoted(name: str) -> str:
    """Return a name as an identifier of SQL, whatever is in it."""
    is_quoted = re.fullmatch(r"`(?:[^`]|``)*`", name) is not None
    return name if is_quoted else "`" + name.replace("`", "``") + "`"
