"""Fixtures: a JVM with the KMS clients, the servers that they talk to, and faults in between.

A server is started by the first test that uses it. Its module is imported then too, so that the tests of
one KMS need nothing that only another's server needs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from doubles.faults import FaultProxy
from harness.jvm import Jvm, start_jvm

if TYPE_CHECKING:
    from servers.aws import AwsServer
    from servers.vault import VaultServer


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """A JVM without Spark: `jvm.client(properties)` is a client behind cache and retries, as catalogs have it.

    Its environment has the variables of harness.jvm.ENVIRONMENT, for properties that name a variable:
    ICEBERG_CRYPTO_TEST_TOKEN, ICEBERG_CRYPTO_TEST_PASSWORD, ICEBERG_CRYPTO_TEST_PIN, a wrong secret in
    ICEBERG_CRYPTO_TEST_WRONG, a login for AWS in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and
    SOFTHSM2_CONF, a file that nobody has written yet. `jvm.environment` has their values. It knows two hosts by
    name, localhost and active.vault.test, and both are this one.

    A module whose JVM must be started in another way (a trust store, a hosts file) overrides this fixture
    with one of its own, made with harness.jvm.start_jvm.
    """
    folder = tmp_path_factory.mktemp("jvm")
    (folder / "hosts").write_text("127.0.0.1 localhost active.vault.test\n")
    started = start_jvm(
        folder / "log",
        {"SOFTHSM2_CONF": str(folder / "softhsm2.conf")},
        options=[f"-Djdk.net.hosts.file={folder / 'hosts'}"],
    )
    yield started
    started.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Jvm]]:
    """`start(environment, options)`: a JVM of its own, stopped with the test."""
    started: list[Jvm] = []

    def start(environment: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> Jvm:
        log = tmp_path / f"log-{len(started)}"
        started.append(start_jvm(log, environment, options))
        return started[-1]

    yield start
    for jvm in started:
        jvm.stop()


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """A JVM without the clouds' libraries."""
    started = start_jvm(tmp_path_factory.mktemp("bare-jvm") / "log", clouds=False)
    yield started
    started.stop()


@pytest.fixture
def faults() -> Iterator[Callable[..., FaultProxy]]:
    """`faults(port)`: a proxy before the server on that port, stopped with the test."""
    started: list[FaultProxy] = []

    def start(*args: object, **kwargs: object) -> FaultProxy:
        started.append(FaultProxy(*args, **kwargs).start())  # type: ignore[arg-type]
        return started[-1]

    yield start
    for proxy in started:
        proxy.stop()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator["AwsServer"]:
    """AWS KMS and S3 as moto imitates them."""
    from servers.aws import start_moto

    server = start_moto(tmp_path_factory.mktemp("moto") / "log")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator["AwsServer"]:
    """AWS KMS as ministack imitates it."""
    from servers.aws import start_ministack

    server = start_ministack(tmp_path_factory.mktemp("ministack") / "log")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator["VaultServer"]:
    """A real Vault with the transit engine."""
    from servers.vault import start_vault

    server = start_vault(tmp_path_factory.mktemp("vault") / "log")
    yield server
    server.stop()
