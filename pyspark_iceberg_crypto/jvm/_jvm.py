"""The way into the JVM. No other module touches Py4J.

The other side is one class of static methods, ``io.icebergcrypto.python.PythonApi``.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.jvm import _connect, artifacts
from pyspark_iceberg_crypto.jvm._typed import UNTYPED, typed_call, typed_errors

with suppress(ImportError):  # pyspark-client has no JVM; whatever needs these refuses its sessions
    from py4j.java_gateway import JavaPackage
    from pyspark import SparkConf, SparkContext

API_CLASS = "io.icebergcrypto.python.PythonApi"
ICEBERG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
_CANCEL_EVERY_SECONDS = 0.1
_CANCEL_AT_MOST_SECONDS = 5.0


def run(spark: SparkSession, operation: str, *, progress: Any = None, **given: Any) -> Any:
    """Do an operation, wherever the session's JVM is; Java's ``Operations`` have them.

    Args:
        spark: the session.
        operation: its name.
        progress: the JVM's Progress; None: nobody asks.
        given: the arguments by their names; None: not given.

    Returns:
        Its answer, of JSON.

    Raises:
        IcebergCryptoError: see ``call`` and ``_connect.run``.
    """
    if _connect.is_connect(spark):
        return _connect.run(spark, operation, given)
    return json.loads(call(spark, "run", operation, json.dumps(given), progress))


def call(spark: SparkSession, method: str, *args: Any) -> Any:
    """Call a method of PythonApi on this session, with Java's errors as ours.

    Raises:
        IcebergCryptoError: see ``api`` and ``typed_call``.
    """
    target = api(spark)
    with typed_call(), _interruptible(spark, target):
        return getattr(target, method)(spark._jsparkSession, *args)


@contextmanager
def _interruptible(spark: SparkSession, target: Any) -> Iterator[None]:
    """Have Ctrl-C cancel the call in the JVM, and raise KeyboardInterrupt when that has ended; a second one, at once.

    PySpark's handler calls the JVM first, which fails while this thread waits for the JVM: nothing is cancelled then,
    and Py4J reports an error without a reason. And an exception of a handler must not reach Py4J if that can be
    helped: if another thread has a connection, Py4J then has the JVM close those of all threads, some time later, and
    whatever Python is calling at that time fails.
    """
    canceller = _Canceller(spark, target)

    def interrupted(*_: Any) -> None:
        if canceller.begun:
            raise KeyboardInterrupt
        canceller.begin()

    before = signal.getsignal(signal.SIGINT)
    is_pysparks = str(getattr(before, "__module__", "")).startswith("pyspark.")
    is_replaced = is_pysparks and threading.current_thread() is threading.main_thread()
    if is_replaced:
        signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    except KeyboardInterrupt:  # of another handler, or of the second Ctrl-C: Python waits no longer
        canceller.begin()
        canceller.wait()
        raise
    except Exception as error:
        if canceller.begun:
            raise KeyboardInterrupt from error
        raise
    finally:
        try:
            canceller.end()
        finally:
            if is_replaced:
                signal.signal(signal.SIGINT, before)
    if canceller.begun:
        raise KeyboardInterrupt


class _Canceller:
    """Cancels what is under way in the JVM, again and again until that has ended.

    It may not have begun yet, a library may catch an interruption and begin another job, and Py4J may cut the
    connection, see above. It has a thread, and so a connection, of its own, which no later Ctrl-C ends.

    Attributes:
        begun: whether it cancels, or did.
    """

    def __init__(self, spark: SparkSession, target: Any) -> None:
        self.begun = False
        self._asked_twice = threading.Event()
        self._ended = threading.Event()
        self._spark, self._target = spark, target
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Cancel from now on."""
        if not self.begun:
            self.begun = True
            self._thread.start()

    def wait(self) -> None:
        """Wait until the JVM has answered twice: a call for which the first time was too early is cancelled then."""
        self._asked_twice.wait(_CANCEL_AT_MOST_SECONDS)

    def end(self) -> None:
        """Cancel no more, which might be the next call."""
        self._ended.set()
        if self.begun:
            self._thread.join(_CANCEL_AT_MOST_SECONDS)

    def _run(self) -> None:
        answers = 0
        while not self._ended.is_set():
            with suppress(*UNTYPED, OSError):
                self._target.cancel(self._spark._jsparkSession)
                answers += 1
            if answers == 2:
                self._asked_twice.set()
            self._ended.wait(_CANCEL_EVERY_SECONDS)


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
    if _connect.is_connect(spark):
        raise _connect.needs_jvm()
    if not isinstance(spark, SparkSession):
        got = "None" if spark is None else f"a {type(spark).__name__}"
        raise errors.NoSessionError(
            f"a SparkSession is needed, but this is {got}",
            "create one: configure_spark(SparkSession.builder, ...).getOrCreate()",
        )
    if spark.sparkContext._jsc is None or _context_is_stopped(spark):
        raise errors.NoSessionError(
            "this Spark session was stopped",
            "create a new one: configure_spark(SparkSession.builder, ...).getOrCreate()",
        )


def _context_is_stopped(spark: SparkSession) -> bool:
    for _ in range(3):  # Py4J cuts connections when Ctrl-C ends a call, which is not ours perhaps
        with suppress(*UNTYPED, OSError):
            return bool(spark.sparkContext._jsc.sc().isStopped())
        time.sleep(_CANCEL_EVERY_SECONDS)
    return True  # the JVM itself has gone


def require_jars(spark: SparkSession | None = None) -> None:
    """Check that the running JVM has our jar and Iceberg's, and that ours is for this Spark and this package.

    Args:
        spark: a session, or None for the JVM of a process that has no session yet.

    Raises:
        JarMissingError: one of them is not on the class path.
        ConfigurationError: our jar is for another Spark, or of another version, or there are two.
    """
    if spark is None:
        SparkContext._ensure_initialized()
    jvm = SparkContext._jvm if spark is None else spark.sparkContext._jvm
    ours = _find_class(jvm, API_CLASS)
    _find_class(jvm, ICEBERG_CLASS)
    with typed_errors():
        ours.checkArtifact()
    version = str(ours.version())
    if version not in (artifacts.VERSION, "unknown"):  # classes that are in no jar
        raise errors.ConfigurationError(
            f"the jar is of iceberg-crypto {version}, and this Python package is {artifacts.VERSION}",
            f"start Spark with --packages {artifacts.hint()}, or install pyspark-iceberg-crypto=={version}",
        )


def _find_class(jvm: Any, name: str) -> Any:
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaPackage):  # Py4J takes any name that is not a class for a package
        jar = "iceberg-crypto" if name == API_CLASS else "Iceberg"
        raise errors.JarMissingError(
            f"the {jar} jar is not on Spark's class path (no class {name})",
            "call configure_spark before the first Spark session of this process, or start Spark "
            f"with --packages {artifacts.hint()}",
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


def cipher_provider(spark: SparkSession) -> str:
    """Tell which of Java's providers encrypts and decrypts files in the driver's JVM."""
    return str(_find_class(spark.sparkContext._jvm, API_CLASS).cipherProvider())


def has_class(spark: SparkSession, name: str) -> bool:
    """Return whether a class is on the class path of the session's JVM."""
    try:
        _find_class(spark.sparkContext._jvm, name)
    except errors.JarMissingError:
        return False
    return True


def is_up() -> bool:
    """Return whether this process already has a JVM, of its own making."""
    return SparkContext._gateway is not None


def launched_conf(key: str) -> str | None:
    """Read a setting that the running JVM was started with (by spark-submit, for example)."""
    SparkContext._ensure_initialized()
    return SparkConf(_jvm=SparkContext._jvm).get(key, None)


def set_launched(settings: Mapping[str, str | None]) -> None:
    """Change what later sessions get of the settings that the running JVM was started with; None takes one out."""
    system = _find_class(SparkContext._jvm, "java.lang.System")
    for key, value in settings.items():
        if value is None:
            system.clearProperty(key)
        else:
            system.setProperty(key, value)


def all_launched() -> dict[str, str]:
    """Read all of Spark's settings that the running JVM was started with."""
    SparkContext._ensure_initialized()
    return dict(SparkConf(_jvm=SparkContext._jvm).getAll())


def loaded_catalogs(spark: SparkSession) -> set[str]:
    """Tell the catalogs that a session has loaded, whose settings are past changing; its own always counts."""
    return {row.catalog for row in spark.sql("SHOW CATALOGS").collect()}


def catalog_properties(spark: SparkSession, catalog: str) -> dict[str, str]:
    """Read the properties that a session gives to a catalog.

    Raises:
        NoSessionError: there is no session, or it was stopped.
        SparkConnectError: the session is a Spark Connect client.
    """
    require_session(spark)
    prefix = f"spark.sql.catalog.{catalog}."
    settings = session_settings(spark)
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def session_settings(spark: SparkSession) -> dict[str, str]:
    """Read all settings of a session."""
    if hasattr(spark.conf, "getAll"):  # since Spark 4.0
        return dict(spark.conf.getAll)
    found = {}
    entries = spark.conf._jconf.getAll().iterator()  # a map of Scala's
    while entries.hasNext():
        entry = entries.next()
        found[str(entry._1())] = str(entry._2())
    return found


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
