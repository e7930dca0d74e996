"""The way to a Spark Connect server, which has no Py4J: operations are asked for in SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException

from pyspark_iceberg_crypto._names import PATH_CATALOG, SESSION_CATALOG, is_path, parts, quoted
from pyspark_iceberg_crypto.errors import NotSupportedError, SparkConnectError, first_line
from pyspark_iceberg_crypto.jvm._typed import typed_call

Row = dict[str, Any]
# Where an error has no condition: Iceberg's, which parses and resolves CALL in Spark 3.5, and that Spark's without it.
_UNKNOWN = re.compile(
    r"No such procedure|Procedure \S+ not found|not a ProcedureCatalog|near 'CALL'|plugin class not found"
)
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)")
_OURS = "io.icebergcrypto.spark."  # what the names of its catalogs' classes begin with

SERVER_SETTINGS = (
    "the server has to be started with this project's jar, of the same version, and with the catalog; "
    "spark_conf(...) returns the settings, for start-connect-server.sh --conf"
)


def is_connect(spark: object) -> bool:
    """Return whether this is a session of Spark Connect."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(spark).__mro__)


class FilesInServer:
    """Stands for the JVM's VerifyResult, whose list of files a client does not get."""

    def files(self) -> Any:
        """Refuse: the list is in the server."""
        raise SparkConnectError(
            "the list of files stays on the server of Spark Connect",
            "problems and counts are in the report; for the list verify where the driver is",
        )

    def close(self) -> None:
        """Do nothing: the server has closed it."""


def needs_jvm() -> SparkConnectError:
    """Return the refusal of what is done with the driver's JVM or files, which no statement reaches."""
    return SparkConnectError(
        "a Spark Connect session has no JVM that Python can call, which this needs",
        "call it where the driver is, in a session built without remote()",
    )


def run(spark: Any, operation: str, given: dict[str, Any]) -> Any:
    """Do what Operations of Java do, by the procedure that reaches all of them.

    Raises:
        SparkConnectError: the server has no such procedure.
        IcebergCryptoError: see ``typed_call``.
    """
    arguments = json.dumps({name: value for name, value in given.items() if value is not None})
    asked = {"name": operation, "arguments": arguments}
    (row,) = rows(spark, _catalog_for(spark, given), "operation", asked)
    return json.loads(row["answer"])


def _literal(value: Any) -> str:
    """Write an argument of a CALL, in which Spark before 4.1 binds no parameters.

    A text that could be anything but itself in SQL is in hex, so that none can become SQL.
    """
    if isinstance(value, bool):
        return str(value).lower()
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
        NotSupportedError: nor has the catalog of another session.
        IcebergCryptoError: see ``typed_call``.
    """
    said = ", ".join(
        f"{name} => {_literal(value)}" for name, value in given.items() if value is not None
    )
    statement = f"CALL {quoted(catalog)}.system.{procedure}({said})"
    is_remote = is_connect(spark)
    try:
        with typed_call(), _interruptible(spark) if is_remote else nullcontext():
            return [row.asDict() for row in spark.sql(statement).collect()]
    except PySparkException as error:
        if not _is_unknown(error):
            raise
        if is_remote:
            raise SparkConnectError(
                f"the server of Spark Connect has no {procedure} in {catalog}: {first_line(error)}",
                SERVER_SETTINGS,
            ) from error
        raise NotSupportedError(
            f"catalog {catalog} has no {procedure}: {first_line(error)}",
            "check the name: it must be a catalog of this project, set up with configure_spark",
        ) from error


@contextmanager
def _interruptible(spark: Any) -> Iterator[None]:
    """Have Ctrl-C end a statement on the server, too, which would continue, and perhaps commit."""
    tag = f"iceberg-crypto-{uuid4()}"
    spark.addTag(tag)
    try:
        yield
    except KeyboardInterrupt:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)


def _is_unknown(error: PySparkException) -> bool:
    # getErrorClass is its name before Spark 4.0
    condition = getattr(error, "getCondition", error.getErrorClass)() or ""
    known = any(word in condition for word in ("PROCEDURE", "ROUTINE", "CATALOG"))
    return known or bool(_UNKNOWN.search(str(error)))


def _catalog_for(spark: Any, given: dict[str, Any]) -> str:
    """Return the name of the catalog that an operation is for; one of this project's where its arguments name none."""
    if table := given.get("table"):
        return _catalog_of(spark, table)
    if named := given.get("catalog") or given.get("name"):
        return parts(named.removesuffix(".*"))[0]
    settings = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    found = (_CATALOG.fullmatch(key) for key, value in settings.items() if value.startswith(_OURS))
    ours = sorted(one[1] for one in found if one)
    current = str(spark.catalog.currentCatalog())
    return current if current in ours else ours[0] if ours else PATH_CATALOG


def _catalog_of(spark: Any, table: str) -> str:
    """Return the name of a table's catalog: a path's, the first part where that is a catalog, or the current one."""
    if is_path(table):
        return PATH_CATALOG
    first, *more = parts(table)
    known = first == SESSION_CATALOG or spark.conf.get(f"spark.sql.catalog.{first}", None)
    # of a.b.t, a is a namespace if it is not a catalog
    if more and (known or (len(more) > 1 and not spark.catalog.databaseExists(quoted(first)))):
        return first
    return str(spark.catalog.currentCatalog())
