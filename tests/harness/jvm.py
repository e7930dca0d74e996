"""A JVM with our KMS clients in it and no Spark: a second to start, driven by Py4J."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from py4j.java_gateway import JavaClass, JavaGateway
from pyspark import SparkContext
from pyspark.errors.exceptions import captured

from harness.classes import BOUND_KMS_CLIENT, IMPLEMENTATIONS, KMS_CLIENTS
from harness.jars import SPARK_JARS, build_jars, our_jar
from pyspark_iceberg_crypto import typed_errors

ENVIRONMENT = {
    "ICEBERG_CRYPTO_TEST_TOKEN": "token-only-for-tests-271828",
    "ICEBERG_CRYPTO_TEST_PASSWORD": "password-only-for-tests-314159",
    "ICEBERG_CRYPTO_TEST_PIN": "577215",
    "ICEBERG_CRYPTO_TEST_WRONG": "wrong-only-for-tests-141421",
    "AWS_ACCESS_KEY_ID": "AKIAONLYFORTESTS0001",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-only-for-tests-161803",
    "AWS_EC2_METADATA_DISABLED": "true",
    # Nobody's own login may find its way into a test.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""The environment variables that every test JVM starts with, whatever the tests' own environment has."""

_LEFT_OUT = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")

_convert_sparks = captured.convert_exception


def _convert(error: Any) -> Exception:
    """pyspark asks Spark's JVM about every Java error of this process, by its number.

    Which is that of another object there when the error comes from one of our JVMs.
    """
    spark = SparkContext._gateway
    if spark is None or error._gateway_client is not spark._gateway_client:
        return captured.UnknownException("not of Spark's JVM", stackTrace="")
    return _convert_sparks(error)


captured.convert_exception = _convert


@dataclass
class Client:
    """A KMS client in the JVM. Java's errors come out as our Python types."""

    jvm: "Jvm"
    java: Any

    def wrap(self, key: bytes, key_id: str) -> bytes:
        return self._call(self.java.wrapKey, key, key_id)

    def unwrap(self, blob: bytes, key_id: str) -> bytes:
        return self._call(self.java.unwrapKey, blob, key_id)

    def check(self, key_id: str) -> None:
        """What KMS.check does: a trial key there and back, past the cache. Not for a raw client."""
        with typed_errors():
            self.java.check(key_id)

    def authenticates(self, key_id: str) -> bool:
        """Whether the client says that only who may use this key can wrap with it."""
        return bool(self.java.authenticatesWrapping(key_id))

    def metrics(self) -> dict[str, Any]:
        """The counters. Not for a raw client."""
        return dict(self.java.snapshot())

    def text(self) -> str:
        return str(self.java.toString())

    def serialized(self) -> bytes:
        """What travels to an executor."""
        view = self.jvm.view
        buffer = view.java.io.ByteArrayOutputStream()
        stream = view.java.io.ObjectOutputStream(buffer)
        stream.writeObject(self.java)
        stream.close()
        return bytes(buffer.toByteArray())

    def travelled(self) -> "Client":
        """What arrives there."""
        io = self.jvm.view.java.io
        stream = io.ObjectInputStream(io.ByteArrayInputStream(self.serialized()))
        return Client(self.jvm, stream.readObject())

    def of_table(self, uuid: str) -> "Client":
        """This client as the manager of a table with this UUID has it."""
        bound = self.jvm.java_class(BOUND_KMS_CLIENT)
        return Client(self.jvm, bound(uuid, self.java))

    def close(self) -> None:
        self.java.close()

    def _call(self, method: Any, data: bytes, key_id: str) -> bytes:
        given = self.jvm.view.java.nio.ByteBuffer.wrap(bytearray(data))
        with typed_errors():
            answer = method(given, key_id)
        assert given.remaining() == len(data), "the caller's buffer was consumed"
        # A copy that works for read-only buffers too, which array() does not.
        return bytes(self.jvm.view.org.apache.iceberg.util.ByteBuffers.toByteArray(answer))


@dataclass
class Jvm:
    """A running JVM. `stop` ends this process and no other."""

    gateway: JavaGateway
    environment: Mapping[str, str]
    log: Path

    @property
    def view(self) -> Any:
        """Py4J's way to every class: `jvm.view.java.lang.System`."""
        return self.gateway.jvm

    def client(self, properties: Mapping[str, str], *, raw: bool = False) -> Client:
        """Makes a client of these catalog properties.

        Args:
            properties: with encryption.kms-type or encryption.kms-impl among them.
            raw: the KMS's own client, initialized, without the cache and the retries in front of it.
        """
        given = self.view.java.util.HashMap()
        for name, value in properties.items():
            given.put(name, value)
        with typed_errors():
            if raw:
                name = properties.get("encryption.kms-impl")
                java = self.java_class(name or IMPLEMENTATIONS[properties["encryption.kms-type"]])()
                java.initialize(given)
            else:
                java = self.java_class(KMS_CLIENTS).create(given)
        return Client(self, java)

    def java_class(self, name: str) -> JavaClass:
        """A class by its full name."""
        found = self.view
        for part in name.split("."):
            found = getattr(found, part)
        assert isinstance(found, JavaClass), f"no {name} on the JVM's class path"
        return found

    def stop(self) -> None:
        process = self.gateway.java_process
        self.gateway.shutdown()
        process.stdin.close()  # the JVM ends itself when this pipe breaks
        process.wait(timeout=30)


def class_path(clouds: bool = True) -> str:
    """Our jar, Iceberg, SQLite, Spark's jars and, behind them as spark.jars would put them, the clouds' libraries.

    ICEBERG_CRYPTO_TEST_CLASSES names a class path to test instead of our jar, such as javac's output.
    """
    ours = os.environ.get("ICEBERG_CRYPTO_TEST_CLASSES") or str(our_jar())
    jars = [*build_jars("test-jars"), SPARK_JARS / "*"]
    if clouds:
        jars += build_jars("kms-jars")
    return os.pathsep.join([ours, *map(str, jars)])


def start_jvm(
    log: Path,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    clouds: bool = True,
) -> Jvm:
    """Starts a JVM.

    Args:
        log: gets what the JVM writes, logs included, so that a test can look for secrets in it.
        environment: environment variables beside ENVIRONMENT.
        options: for java, such as -Djavax.net.ssl.trustStore=... or -Djdk.net.hosts.file=...
        clouds: whether the clouds' libraries are on the class path.
    """
    variables = {**ENVIRONMENT, **(environment or {})}
    with mock.patch.dict(os.environ), log.open("a", buffering=1) as output:
        for name in _LEFT_OUT:
            os.environ.pop(name, None)
        os.environ.update(variables)
        gateway = JavaGateway.launch_gateway(
            classpath=class_path(clouds),
            javaopts=[
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Dorg.apache.logging.log4j.level=INFO",
                *options,
            ],
            die_on_exit=True,
            redirect_stdout=log.open("a", buffering=1),
            redirect_stderr=output,
            java_path=None,  # JAVA_HOME's, or the one on the path
            enable_auth=True,
        )
    return Jvm(gateway, variables, log)
