"""The way into the JVM. No other module touches Py4J.

The other side is one class of static methods, ``io.icebergcrypto.python.PythonApi``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto import errors

API_CLASS = "io.icebergcrypto.python.PythonApi"
ICEBERG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
COORDINATE = "io.icebergcrypto:iceberg-crypto-spark-4.1_2.13:0.1.0"

_JAVA_PACKAGE = "io.icebergcrypto."
_PYTHON_TYPES = {
    "IcebergCryptoException": errors.IcebergCryptoError,
    "InvalidConfigurationException": errors.ConfigurationError,
    "KeyNotFoundException": errors.KeyNotFoundError,
    "KeyDisabledException": errors.KeyDisabledError,
    "KmsUnavailableException": errors.KmsUnavailableError,
    "AccessDeniedException": errors.AccessDeniedError,
    "LoginFailedException": errors.LoginFailedError,
    "TamperedException": errors.TamperedError,
    "BadWrappedKeyException": errors.BadWrappedKeyError,
    "PlaintextException": errors.PlaintextFoundError,
    "NotSupportedException": errors.NotSupportedError,
    "NotEncryptedException": errors.NotEncryptedError,
}
# What a call raises when no error of ours is behind it.
UNTYPED = (Py4JError, CapturedException)
# Exceptions of Spark, Iceberg and Java that a wrong argument causes.
_BAD_ARGUMENT = {
    "org.apache.iceberg.exceptions.NotFoundException": "check the path",
    "java.io.FileNotFoundException": "check the path",
    "org.apache.iceberg.exceptions.NoSuchTableException": "check the table's name, and that of its "
    "catalog",
    "org.apache.iceberg.exceptions.NoSuchNamespaceException": "check the namespace's name",
    "org.apache.spark.sql.connector.catalog.CatalogNotFoundException": "check the catalog's name, "
    "or set the catalog up with configure_spark",
}
# An executor's exception reaches the driver as the text of a stack trace.
_IN_TEXT = re.compile(
    r"io\.icebergcrypto\.(?P<type>\w+Exception): (?P<problem>.+?)"
    r"(?:\n  hint: (?P<hint>[^\n]+))?(?=\n|\Z)",
    re.DOTALL,
)


def call(spark: SparkSession, method: str, *args: Any) -> Any:
    """Call a method of PythonApi on this session, with Java's errors as ours.

    Raises:
        IcebergCryptoError: see ``api`` and ``typed_errors``.
    """
    target = api(spark)
    with typed_errors():
        return getattr(target, method)(spark._jsparkSession, *args)


def api(spark: SparkSession) -> Any:
    """Find PythonApi in the session's JVM.

    Raises:
        NoSessionError: there is no session, or it was stopped.
        SparkConnectError: the session is a Spark Connect client.
        JarMissingError: the JVM runs without our jar.
    """
    require_session(spark)
    return _find_class(spark.sparkContext._jvm, API_CLASS)


def require_session(spark: SparkSession | None) -> None:
    """Check that this is a session with a running JVM behind it.

    Raises:
        NoSessionError: there is no session, or it was stopped.
        SparkConnectError: the session is a Spark Connect client.
    """
    if any(c.__module__.startswith("pyspark.sql.connect.") for c in type(spark).__mro__):
        raise errors.SparkConnectError(
            "a Spark Connect session has no JVM that Python could call",
            "use SQL, such as CALL lake.system.verify_encryption(table => 'db.t'), or call this where the driver is, "
            "in a session built without remote()",
        )
    if not isinstance(spark, SparkSession):
        got = "None" if spark is None else f"a {type(spark).__name__}"
        raise errors.NoSessionError(
            f"a SparkSession is needed, and this is {got}",
            "make one: configure_spark(SparkSession.builder, ...).getOrCreate()",
        )
    if spark.sparkContext._jsc is None or _context_is_stopped(spark):
        raise errors.NoSessionError(
            "this Spark session was stopped",
            "make a new one: configure_spark(SparkSession.builder, ...).getOrCreate()",
        )


def _context_is_stopped(spark: SparkSession) -> bool:
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):  # the JVM itself has gone
        return True


def require_jars(spark: SparkSession | None = None) -> None:
    """Check that the running JVM has our jar and Iceberg's.

    Args:
        spark: a session, or None for the JVM of a process that has no session yet.

    Raises:
        JarMissingError: one of them is not on the class path.
    """
    if spark is None:
        SparkContext._ensure_initialized()
    jvm = SparkContext._jvm if spark is None else spark.sparkContext._jvm
    _find_class(jvm, API_CLASS)
    _find_class(jvm, ICEBERG_CLASS)


def _find_class(jvm: Any, name: str) -> Any:
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaPackage):  # Py4J takes any name that is not a class for a package
        jar = "iceberg-crypto" if name == API_CLASS else "Iceberg"
        raise errors.JarMissingError(
            f"the {jar} jar is not on Spark's class path (no class {name})",
            "call configure_spark before the first Spark session of this process, or start Spark "
            f"with --packages {COORDINATE}",
        )
    return found


def java_version(spark: SparkSession) -> str:
    """Tell the version of the Java that Spark runs on."""
    system = _find_class(spark.sparkContext._jvm, "java.lang.System")
    return str(system.getProperty("java.version"))


def environment(spark: SparkSession, name: str) -> str | None:
    """Read an environment variable of the driver's JVM."""
    value = _find_class(spark.sparkContext._jvm, "java.lang.System").getenv(name)
    return None if value is None else str(value)


def jar_versions(spark: SparkSession) -> dict[str, str]:
    """Tell the versions of our jar and of Iceberg's in the JVM."""
    jvm = spark.sparkContext._jvm
    return {
        "iceberg-crypto": str(_find_class(jvm, API_CLASS).version()),
        "Iceberg": str(_find_class(jvm, "org.apache.iceberg.IcebergBuild").version()),
    }


def has_class(spark: SparkSession, name: str) -> bool:
    """Tell whether a class is on the class path of the session's JVM."""
    try:
        _find_class(spark.sparkContext._jvm, name)
    except errors.JarMissingError:
        return False
    return True


def is_up() -> bool:
    """Tell whether this process already has a JVM, of its own making."""
    return SparkContext._gateway is not None


def launched_conf(key: str) -> str | None:
    """Read a setting that the running JVM was started with (by spark-submit, for example)."""
    SparkContext._ensure_initialized()
    return SparkConf(_jvm=SparkContext._jvm).get(key, None)


def catalog_properties(spark: SparkSession, catalog: str) -> dict[str, str]:
    """Read the properties that a session gives to a catalog.

    Raises:
        NoSessionError: there is no session, or it was stopped.
        SparkConnectError: the session is a Spark Connect client.
    """
    require_session(spark)
    prefix = f"spark.sql.catalog.{catalog}."
    settings = dict(spark.conf.getAll)
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def data_frame(spark: SparkSession, dataset: Any) -> DataFrame:
    """Make a PySpark DataFrame of a Java Dataset."""
    return DataFrame(dataset, spark)


def shut_down(spark: SparkSession) -> None:
    """Stop the session and end the JVM behind it, so that locks it holds are free on return."""
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # the JVM ends itself when this pipe breaks
        process.wait(timeout=60)
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextmanager
def typed_errors() -> Iterator[None]:
    """Turn a JVM exception that has one of ours among its causes into the matching Python error.

    What this package's own functions raise is typed already. This is for SQL and DataFrames:

    >>> with typed_errors():
    ...     spark.sql("INSERT INTO lake.db.t VALUES (1)")

    Exceptions that have nothing to do with encryption pass as they are.

    Raises:
        IcebergCryptoError: the matching child, with Java's problem and hint.
        NoSessionError: the JVM has gone.
    """
    try:
        yield
    except Py4JNetworkError as error:
        raise errors.NoSessionError(
            "Spark's JVM does not answer", "start a new Python process"
        ) from error
    except (Py4JJavaError, CapturedException) as error:
        typed = _typed(error)
        if typed is None:
            raise
        raise typed from error


def _typed(error: Py4JJavaError | CapturedException) -> errors.IcebergCryptoError | None:
    for thrown in _causes(error):
        name = str(thrown.getClass().getName())
        if name.startswith(_JAVA_PACKAGE):
            kind = _PYTHON_TYPES.get(name.rpartition(".")[2], errors.IcebergCryptoError)
            return kind(str(thrown.problem()), str(thrown.hint() or ""))
    for thrown in _causes(error):
        hint = _BAD_ARGUMENT.get(str(thrown.getClass().getName()))
        if hint is not None:
            return errors.ConfigurationError(str(thrown.getMessage()), hint)
    return from_text(str(error))


def _causes(error: Py4JJavaError | CapturedException) -> Iterator[Any]:
    thrown = error._origin if isinstance(error, CapturedException) else error.java_exception
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def first_line(error: BaseException) -> str:
    """Say in one line what an exception says, a Java one without its stack trace."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        text = str(error.java_exception.toString())
    return next(iter(text.strip().splitlines()), type(error).__name__)


def from_text(text: str) -> errors.IcebergCryptoError | None:
    """Find one of our exceptions in the text of a stack trace, or return None."""
    found = _IN_TEXT.search(text)
    if found is None:
        return None
    kind = _PYTHON_TYPES.get(found["type"], errors.IcebergCryptoError)
    return kind(found["problem"], found["hint"] or "")
