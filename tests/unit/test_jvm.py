"""The boundary to the JVM: no session, the wrong session, the missing jar, Java's errors."""

import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.in_process import JavaThrowable
from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors.exceptions.captured import AnalysisException
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.jvm import _jvm, artifacts
from pyspark_iceberg_crypto.jvm._typed import from_text, typed_errors
from pyspark_iceberg_crypto.verbs.inspection import inspect_file
from pyspark_iceberg_crypto.verbs.verify import verify_table

JAVA = "io.icebergcrypto."


def thrown(throwable: JavaThrowable) -> Py4JJavaError:
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = throwable
    error.errmsg = "an error"
    return error


@pytest.fixture(autouse=True)
def plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Py4J asks the JVM for an exception's text; these exceptions have none."""
    monkeypatch.setattr(Py4JJavaError, "__str__", lambda self: self.errmsg)


class Session(SparkSession):
    """A session on a JVM double."""

    def __init__(self, jvm: Any, stopped: bool = False) -> None:
        context = SimpleNamespace(isStopped=lambda: stopped)
        jsc = SimpleNamespace(sc=lambda: context)
        self._sc = SimpleNamespace(_jsc=jsc, _jvm=jvm)  # type: ignore[assignment]
        self._jsparkSession = "a Java session"  # type: ignore[assignment]


def jvm_with(api: Any) -> Any:
    python = SimpleNamespace(PythonApi=api)
    return SimpleNamespace(io=SimpleNamespace(icebergcrypto=SimpleNamespace(python=python)))


def test_a_call_passes_the_session_and_the_arguments() -> None:
    api = SimpleNamespace(inspectFile=lambda *args: args)
    assert _jvm.call(Session(jvm_with(api)), "inspectFile", "p") == ("a Java session", "p")


@pytest.fixture
def pysparks_handler() -> Iterator[Any]:
    """PySpark's own handler would call the JVM in the middle of a call."""

    def handler(*_: Any) -> None:
        raise RuntimeError("reentrant call")

    handler.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, handler)
    yield handler
    signal.signal(signal.SIGINT, before)


class Call:
    """A call of the JVM that ends with the last answer to a cancel; Ctrl-C is pressed meanwhile, once or more often."""

    def __init__(self, *answers: Any, presses: int = 1) -> None:
        self.answers = list(answers)
        self.presses = presses
        self.cancelled = threading.Event()

    def encryptTable(self, *_: Any) -> None:  # noqa: N802 (Java's)
        for _each in range(self.presses):
            signal.raise_signal(signal.SIGINT)
        assert self.cancelled.wait(30)
        raise thrown(JavaThrowable(JAVA + "CancelledException", "cancelled", ""))

    def cancel(self, session: Any) -> int:
        assert session == "a Java session"
        if not self.answers:
            return 0  # it has ended
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if not self.answers:
            self.cancelled.set()
        return int(answer)


CUT = Py4JError("Answer from Java side is empty")


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([1], id="at once"),
        pytest.param([CUT, Py4JNetworkError("cut"), 1], id="Py4J cuts the connection"),
        pytest.param([0, 0, 1], id="the call had not begun"),
        pytest.param([1, 1, 1], id="the call went on"),
    ],
)
def test_ctrl_c_cancels_what_the_jvm_does(answers: list[Any], pysparks_handler: Any) -> None:
    call = Call(*answers)
    with pytest.raises(KeyboardInterrupt) as caught:
        _jvm.call(Session(jvm_with(call)), "encryptTable", "lake.db.t")
    assert call.answers == []
    assert isinstance(caught.value.__cause__, Py4JJavaError)  # the call has ended
    assert signal.getsignal(signal.SIGINT) is pysparks_handler


def test_a_second_ctrl_c_ends_at_once_but_cancels(pysparks_handler: Any) -> None:
    call = Call(CUT, 0, 1, presses=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        _jvm.call(Session(jvm_with(call)), "encryptTable", "lake.db.t")
    assert call.cancelled.is_set()
    assert caught.value.__cause__ is None
    assert signal.getsignal(signal.SIGINT) is pysparks_handler


def test_a_call_that_ends_in_spite_of_ctrl_c_is_interrupted_all_the_same(
    pysparks_handler: Any,
) -> None:
    threads = threading.active_count()
    pressed = SimpleNamespace(
        encryptTable=lambda *_: signal.raise_signal(signal.SIGINT), cancel=lambda _: 0
    )
    with pytest.raises(KeyboardInterrupt):
        _jvm.call(Session(jvm_with(pressed)), "encryptTable", "lake.db.t")
    assert threading.active_count() == threads  # none is left that would cancel the next call
    assert signal.getsignal(signal.SIGINT) is pysparks_handler


def test_a_session_is_not_taken_for_stopped_when_py4j_cuts_a_connection() -> None:
    api = SimpleNamespace(inspectFile=lambda *_: "told")
    spark = Session(jvm_with(api))
    context = spark._sc._jsc.sc()
    answers = iter([CUT, Py4JNetworkError("cut"), context])

    def sc() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    spark._sc._jsc.sc = sc
    assert _jvm.call(spark, "inspectFile", "p") == "told"


@pytest.mark.parametrize(
    ("function", "argument"), [(inspect_file, "s3://bucket/file"), (verify_table, "lake.db.t")]
)
def test_no_session(function: Any, argument: str) -> None:
    with pytest.raises(errors.NoSessionError, match="this is None") as caught:
        function(None, argument)
    assert "configure_spark" in caught.value.hint


def test_a_stopped_session() -> None:
    with pytest.raises(errors.NoSessionError, match="was stopped"):
        _jvm.api(Session(jvm_with(None), stopped=True))


def test_a_session_whose_jvm_has_gone() -> None:
    spark = Session(None)
    spark._sc._jsc.sc = lambda: (_ for _ in ()).throw(Py4JNetworkError("gone"))
    with pytest.raises(errors.NoSessionError, match="was stopped"):
        _jvm.api(spark)


class Packages(JavaPackage):
    """A JVM without the jar: Py4J takes every name in it for a package."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> "Packages":
        return self


def test_a_missing_jar() -> None:
    spark = Session(Packages())
    with pytest.raises(errors.JarMissingError, match="iceberg-crypto jar") as caught:
        _jvm.api(spark)
    assert f"--packages {artifacts.BUILDS[0].coordinate}" in caught.value.hint


def test_a_jar_of_another_version() -> None:
    api = SimpleNamespace(checkArtifact=lambda: None, version=lambda: artifacts.VERSION)
    jvm = jvm_with(api)
    spark = SimpleNamespace(SparkCatalog="a class")
    jvm.org = SimpleNamespace(apache=SimpleNamespace(iceberg=SimpleNamespace(spark=spark)))
    _jvm.require_jars(Session(jvm))
    api.version = lambda: "0.0.9"
    with pytest.raises(errors.ConfigurationError, match="the jar is of iceberg-crypto 0.0.9"):
        _jvm.require_jars(Session(jvm))


def test_a_class_is_there_or_not() -> None:
    there = SimpleNamespace(com=SimpleNamespace(Library="a class"))
    assert _jvm.has_class(Session(there), "com.Library")
    assert not _jvm.has_class(Session(Packages()), "com.Library")


def test_what_the_jvm_runs_on() -> None:
    system = SimpleNamespace(getProperty={"java.version": "17.0.9"}.get, getenv={"A": "x"}.get)
    api = SimpleNamespace(version=lambda: "0.1.0", cipherProvider=lambda: "SunJCE")
    jvm = jvm_with(api)
    jvm.java = SimpleNamespace(lang=SimpleNamespace(System=system))
    build = SimpleNamespace(version=lambda: "1.12.0")
    jvm.org = SimpleNamespace(apache=SimpleNamespace(iceberg=SimpleNamespace(IcebergBuild=build)))
    assert _jvm.java_version(Session(jvm)) == "17.0.9"
    assert _jvm.jar_versions(Session(jvm)) == {"iceberg-crypto": "0.1.0", "Iceberg": "1.12.0"}
    assert _jvm.cipher_provider(Session(jvm)) == "SunJCE"
    assert (_jvm.environment(Session(jvm), "A"), _jvm.environment(Session(jvm), "B")) == ("x", None)


@pytest.mark.parametrize(
    ("java", "python"),
    [
        ("IcebergCryptoException", errors.IcebergCryptoError),
        ("InvalidConfigurationException", errors.ConfigurationError),
        ("KeyNotFoundException", errors.KeyNotFoundError),
        ("KeyDisabledException", errors.KeyDisabledError),
        ("KmsUnavailableException", errors.KmsUnavailableError),
        ("AccessDeniedException", errors.AccessDeniedError),
        ("LoginFailedException", errors.LoginFailedError),
        ("TamperedException", errors.TamperedError),
        ("BadWrappedKeyException", errors.BadWrappedKeyError),
        ("PlaintextException", errors.PlaintextFoundError),
        ("NotSupportedException", errors.NotSupportedError),
        ("NotEncryptedException", errors.NotEncryptedError),
        ("TableNotFoundException", errors.TableNotFoundError),
        ("CancelledException", errors.CancelledError),
        ("OneOfALaterVersionException", errors.IcebergCryptoError),
    ],
)
def test_a_java_error_deep_among_the_causes_becomes_its_python_type(
    java: str, python: type[errors.IcebergCryptoError]
) -> None:
    ours = JavaThrowable(JAVA + java, "no key 'k9'", "create it")
    outer = JavaThrowable("java.lang.RuntimeException", cause=JavaThrowable("X", cause=ours))
    with pytest.raises(errors.IcebergCryptoError) as caught, typed_errors():
        raise thrown(outer)
    assert type(caught.value) is python
    assert (caught.value.message, caught.value.hint) == ("no key 'k9'", "create it")
    assert isinstance(caught.value.__cause__, Py4JJavaError)


def test_an_error_that_pyspark_has_converted_is_looked_through() -> None:
    ours = JavaThrowable(JAVA + "KeyNotFoundException", "no key", None)
    error = AnalysisException.__new__(AnalysisException)
    error._origin = JavaThrowable("org.apache.spark.sql.AnalysisException", cause=ours)
    with pytest.raises(errors.KeyNotFoundError) as caught, typed_errors():
        raise error
    assert caught.value.hint == ""


def test_our_jar_without_icebergs_says_what_is_missing() -> None:
    missing = JavaThrowable(
        "java.lang.NoClassDefFoundError", "org/apache/iceberg/spark/SparkCatalog"
    )
    for error in (missing, JavaThrowable("X", cause=missing)):
        with (
            pytest.raises(errors.JarMissingError, match="Iceberg's jar is not") as caught,
            typed_errors(),
        ):
            raise thrown(error)
        assert "--packages io.icebergcrypto:" in caught.value.hint
    other = thrown(JavaThrowable("java.lang.NoClassDefFoundError", "com/example/Library"))
    with pytest.raises(Py4JJavaError), typed_errors():
        raise other


@pytest.mark.parametrize(
    "name", ["org.apache.iceberg.exceptions.NotFoundException", "java.io.FileNotFoundException"]
)
def test_a_missing_file_is_a_wrong_argument_of_our_calls_alone(name: str) -> None:
    """In a query it is a file of some table, encrypted or not."""
    error = thrown(JavaThrowable("X", cause=JavaThrowable(name, "no file /nope")))

    def inspect(*_: Any) -> None:
        raise error

    spark = Session(jvm_with(SimpleNamespace(inspectFile=inspect)))
    with pytest.raises(errors.ConfigurationError, match="no file /nope"):
        _jvm.call(spark, "inspectFile", "/nope")
    with pytest.raises(Py4JJavaError) as caught, typed_errors():
        raise error
    assert caught.value is error


def test_a_java_error_in_one_line() -> None:
    assert errors.first_line(thrown(JavaThrowable("java.X", "a\nb"))) == "java.X: a"
    assert errors.first_line(OSError()) == "OSError"


def test_any_other_java_error_is_left_alone() -> None:
    error = thrown(JavaThrowable("java.io.IOException", cause=JavaThrowable("X")))
    with pytest.raises(Py4JJavaError) as caught, typed_errors():
        raise error
    assert caught.value is error


def test_a_jvm_that_does_not_answer() -> None:
    with pytest.raises(errors.NoSessionError, match="does not answer"), typed_errors():
        raise Py4JNetworkError("gone")


def test_an_executors_error_is_found_in_the_text_of_its_trace() -> None:
    found = from_text(
        "Job aborted: Lost task 0.0: io.icebergcrypto.TamperedException: Table db.t: file f\n"
        "was cut\n  hint: restore it\n\tat io.icebergcrypto.X.y(X.java:1)\n"
    )
    assert isinstance(found, errors.TamperedError)
    assert found.message.startswith("Table db.t: file f")
    assert from_text("java.io.IOException: nothing of ours") is None
