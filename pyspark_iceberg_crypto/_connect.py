"""The way to a Spark Connect server, which has no Py4J: what PythonApi does is asked for by its procedures, in SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException

from pyspark_iceberg_crypto._names import is_path, parts, quoted
from pyspark_iceberg_crypto._typed import typed_errors
from pyspark_iceberg_crypto.errors import SparkConnectError, first_line
from pyspark_iceberg_crypto.settings import PATH_CATALOG, SESSION_CATALOG

Row = dict[str, Any]
# Where an error has no condition: Iceberg's, which parses and resolves CALL in Spark 3.5, and that Spark's without it.
_UNKNOWN = re.compile(
    r"No such procedure|Procedure \S+ not found|not a ProcedureCatalog|near 'CALL'|plugin class not found"
)
_UNCHECKED = "nothing is known about it"  # a finding of repair_table

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
    head, *others = rows
    whole = {name: head[name] for name in ("table", "message", "files", "bytes")}
    paths = [row["path"] for row in others if row["message"] is None]
    outside = {row["path"]: row["files"] for row in others if row["files"] is not None}
    told = [row for row in others if row["message"] is not None and row["files"] is None]
    left = [row["path"] for row in told if row["message"].startswith("left")]
    gaps = [row["message"].partition(": ")[2] for row in told if row["path"] is None]
    outside_paths = [row["path"] for row in told if row["message"].startswith("old file")]
    more = re.search(r"(\d+) plaintext files elsewhere are left", head["message"])
    return json.dumps(
        {
            **whole,
            "committed": head["deleted"],
            "paths": paths,
            "outside": outside,
            "outside_paths": outside_paths,
            "left": int(more[1]) if more else len(left),
            "left_paths": left,
            "gaps": gaps,
        }
    )


def _repaired(rows: list[Row]) -> str:
    return json.dumps(
        {"complete": all(row["finding"] != _UNCHECKED for row in rows), "findings": rows}
    )


def _verified(rows: list[Row]) -> Verified:
    return Verified(next(row["report"] for row in rows if row["kind"] == "table"))


@dataclass(frozen=True)
class _Procedure:
    """What does the same as a method of PythonApi.

    Attributes:
        name: its name.
        given: makes its arguments, beside the table, of those of the method after the table.
        answer: makes the method's answer of its rows.
    """

    name: str
    given: Callable[..., dict[str, Any]]
    answer: Callable[[list[Row]], Any] = _row


_PROCEDURES = {
    "decryptTable": _Procedure("decrypt_table", lambda allow, _: {"allow_plaintext": allow}),
    "encryptTable": _Procedure(
        "encrypt_table",
        lambda key_id, most, dry_run, _: {
            "key_id": key_id,
            "max_bytes": None if most is None else int(most),
            "dry_run": dry_run,
        },
    ),
    "pruneEncryptionKeys": _Procedure("prune_encryption_keys", lambda dry: {"dry_run": dry}),
    "purgePlaintext": _Procedure(
        "purge_plaintext",
        lambda options, _: {name: one for name, one in json.loads(options).items() if one != []},
        _purged,
    ),
    "reencryptTable": _Procedure(
        "reencrypt_table",
        lambda options, dry_run: {"options": json.loads(options) or None, "dry_run": dry_run},
    ),
    "repairTable": _Procedure("repair_table", lambda yes: {"yes": yes}, _repaired),
    "rotateKek": _Procedure(
        "rotate_kek", lambda rewrap, dry_run: {"rewrap": rewrap, "dry_run": dry_run}
    ),
    "rotateMasterKey": _Procedure(
        "rotate_master_key",
        lambda new, former, dry: {"new_key_id": new, "from_catalog": former, "dry_run": dry},
    ),
    "verifyTable": _Procedure(
        "verify_encryption",
        lambda options, _: {**json.loads(options), "report": True},
        _verified,
    ),
}


def needs_jvm() -> SparkConnectError:
    """Return the refusal of what no procedure does."""
    return SparkConnectError(
        "a Spark Connect session has no JVM that Python could call, and no procedure does all that this function does",
        "call it where the driver is, in a session built without remote(); some of it SQL does, such as "
        "CALL lake.system.encryption_keys(table => 'db.t')",
    )


def call(spark: Any, method: str, *args: Any) -> Any:
    """Do what a method of PythonApi does, where a procedure does the same.

    Raises:
        SparkConnectError: none does, or the server has no such procedure.
        IcebergCryptoError: see ``typed_errors``.
    """
    procedure = _PROCEDURES.get(method)
    if procedure is None:
        raise needs_jvm()
    table, *more = args
    given = {"table": table, **procedure.given(*more)}
    return procedure.answer(rows(spark, _catalog_of(spark, table), procedure.name, given))


def _literal(value: Any) -> str:
    """Write an argument of a CALL, in which Spark before 4.1 binds no parameters.

    A text that could be anything but itself in SQL is in hex, so that none can become SQL.
    """
    if isinstance(value, dict):
        return f"map({', '.join(_literal(text) for text in sum(value.items(), ()))})"
    if isinstance(value, list):
        return f"array({', '.join(map(_literal, value))})"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value!r}D"
    text = str(value)
    if re.fullmatch(r"[A-Za-z0-9_.:/=-]*", text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def rows(spark: Any, catalog: str, procedure: str, given: dict[str, Any]) -> list[Row]:
    """Call a procedure of a catalog.

    Args:
        spark: the session.
        catalog: the catalog's name, not quoted.
        procedure: the procedure's name.
        given: the arguments by their names; None: not given.

    Raises:
        SparkConnectError: the server has no such procedure.
        IcebergCryptoError: see ``typed_errors``.
    """
    said = ", ".join(
        f"{name} => {_literal(value)}" for name, value in given.items() if value is not None
    )
    statement = f"CALL {quoted(catalog)}.system.{procedure}({said})"
    tag = f"iceberg-crypto-{uuid4()}"
    spark.addTag(tag)
    with typed_errors():
        try:
            return [row.asDict() for row in spark.sql(statement).collect()]
        except KeyboardInterrupt:
            spark.interruptTag(tag)  # else the server would go on, and perhaps commit
            raise
        except PySparkException as error:
            if _is_unknown(error):
                raise SparkConnectError(
                    f"the server of Spark Connect has no {procedure} in {catalog}: {first_line(error)}",
                    SERVER_SETTINGS,
                ) from error
            raise
        finally:
            spark.removeTag(tag)


def _is_unknown(error: PySparkException) -> bool:
    # getErrorClass is its name before Spark 4.0
    condition = getattr(error, "getCondition", error.getErrorClass)() or ""
    known = any(word in condition for word in ("PROCEDURE", "ROUTINE", "CATALOG"))
    return known or bool(_UNKNOWN.search(str(error)))


def _catalog_of(spark: Any, table: str) -> str:
    """Return the name of a table's catalog: a path's, the first part where that is a catalog, or the current one."""
    if is_path(table):
        return PATH_CATALOG
    first, *more = parts(table)
    known = first == SESSION_CATALOG or spark.conf.get(f"spark.sql.catalog.{first}", None)
    # of a.b.t, a is a namespace if it is no catalog
    if more and (known or (len(more) > 1 and not spark.catalog.databaseExists(quoted(first)))):
        return first
    return str(spark.catalog.currentCatalog())
