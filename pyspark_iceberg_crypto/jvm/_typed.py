"""The errors of Spark and Java, as ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.errors import PySparkException

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.jvm import artifacts

try:
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
except ImportError:  # only pyspark-client is installed: there are no such errors
    Py4JError = Py4JJavaError = Py4JNetworkError = type("Py4JError", (Exception,), {})


_JAVA_PACKAGE = "io.icebergcrypto."
_PYTHON_TYPES = {
    "IcebergCryptoException": errors.IcebergCryptoError,
    "InvalidConfigurationException": errors.ConfigurationError,
    "TableNotFoundException": errors.TableNotFoundError,
    "CancelledException": errors.CancelledError,
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
UNTYPED = (Py4JError, PySparkException)
# Exceptions of Spark, Iceberg and Java that a wrong argument causes.
_Arguments: TypeAlias = dict[str, tuple[type[errors.IcebergCryptoError], str]]
_BAD_ARGUMENT: _Arguments = {
    "org.apache.iceberg.exceptions.NoSuchTableException": (
        errors.TableNotFoundError,
        "check the table's name, and that of its catalog",
    ),
    "org.apache.iceberg.exceptions.NoSuchNamespaceException": (
        errors.TableNotFoundError,
        "check the namespace's name",
    ),
    "org.apache.spark.sql.connector.catalog.CatalogNotFoundException": (
        errors.ConfigurationError,
        "check the catalog's name, or set the catalog up with configure_spark",
    ),
}
# The same where an argument is a path, as in this package's own calls. In a query, a file of a table is missing.
_BAD_PATH: _Arguments = {
    **_BAD_ARGUMENT,
    "org.apache.iceberg.exceptions.NotFoundException": (
        errors.ConfigurationError,
        "check the path",
    ),
    "java.io.FileNotFoundException": (errors.ConfigurationError, "check the path"),
}
_NO_CLASS = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")
_ICEBERGS = re.compile(r"org\.apache\.iceberg\.[\w.$]+$")
# An executor's exception reaches the driver as the text of a stack trace, the driver's a client of Spark Connect as
# "(class) message".
_IN_TEXT = re.compile(
    r"io\.icebergcrypto\.(?:\w+\.)*(?P<type>\w+Exception)(?:: |\) )(?P<problem>.+?)"
    r"(?:\n  hint: (?P<hint>[^\n]+))?(?=\n|\Z)",
    re.DOTALL,
)


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
    with _typed_by(_BAD_ARGUMENT):
        yield


@contextmanager
def typed_call() -> Iterator[None]:
    """The same for a call of this package, which may have named a file that is missing.

    Raises:
        IcebergCryptoError: see ``typed_errors``.
    """
    with _typed_by(_BAD_PATH):
        yield


@contextmanager
def _typed_by(bad_arguments: _Arguments) -> Iterator[None]:
    try:
        yield
    except Py4JNetworkError as error:
        raise errors.NoSessionError(
            "Spark's JVM does not answer", "start a new Python process"
        ) from error
    except (Py4JJavaError, PySparkException) as error:
        typed = _typed(error, bad_arguments)
        if typed is None:
            raise
        raise typed from error


def _typed(
    error: Py4JJavaError | PySparkException, bad_arguments: _Arguments
) -> errors.IcebergCryptoError | None:
    named = [(str(thrown.getClass().getName()), thrown) for thrown in _causes(error)]
    for name, thrown in named:
        if name.startswith(_JAVA_PACKAGE):
            kind = _PYTHON_TYPES.get(name.rpartition(".")[2], errors.IcebergCryptoError)
            return kind(str(thrown.problem()), str(thrown.hint() or ""))
    for name, thrown in named:
        if name in bad_arguments:
            kind, hint = bad_arguments[name]
            return kind(str(thrown.getMessage()), hint)
        if name not in _NO_CLASS:
            continue
        missing = str(thrown.getMessage()).replace("/", ".")
        if _ICEBERGS.match(missing):
            return errors.JarMissingError(
                f"Iceberg's jar is not on Spark's class path, and this project's jar is (no class {missing})",
                "call configure_spark before the first Spark session of this process, which adds both, or start "
                f"Spark with --packages {artifacts.hint()}",
            )
    return from_text(str(error))


def _causes(error: Py4JJavaError | PySparkException) -> Iterator[Any]:
    """Go through the Java exceptions behind an error; those of Spark Connect are text only."""
    thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def from_text(text: str) -> errors.IcebergCryptoError | None:
    """Find one of our exceptions in the text of a stack trace, or return None."""
    found = _IN_TEXT.search(text)
    if found is None:
        return None
    kind = _PYTHON_TYPES.get(found["type"], errors.IcebergCryptoError)
    return kind(found["problem"], found["hint"] or "")
