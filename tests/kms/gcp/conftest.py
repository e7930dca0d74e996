"""Fixtures: a double of Google Cloud KMS for each test, a login and a key in it, and a JVM with no other login."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles.faults import FaultProxy
from doubles.gcp import GcpKmsDouble
from doubles.gcp_world import GcpWorld
from harness.jvm import Jvm, start_jvm
from harness.tls import TestAuthority, make_authority


@pytest.fixture(scope="session")
def gcloud(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of gcloud's settings, where the application default credentials are looked for."""
    return tmp_path_factory.mktemp("gcloud")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def jvm(
    gcloud: Path, authority: TestAuthority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jvm]:
    """A JVM that does not find the credentials of the user who runs the tests, and trusts the tests' authority."""
    nobody = {
        "CLOUDSDK_CONFIG": str(gcloud),
        "NO_GCE_CHECK": "true",
        "GOOGLE_APPLICATION_CREDENTIALS": "",
    }
    started = start_jvm(
        tmp_path_factory.mktemp("gcp-jvm") / "log", nobody, options=authority.java_options
    )
    yield started
    started.stop()


@pytest.fixture
def double() -> Iterator[GcpKmsDouble]:
    started = GcpKmsDouble().start()
    yield started
    started.stop()


@pytest.fixture
def properties(double: GcpKmsDouble, tmp_path: Path) -> dict[str, str]:
    """Of a client that logs in with a service account's file, and does not wait long between tries."""
    file = double.login.service_account(tmp_path / "account.json")
    return {
        "encryption.kms-type": "gcp",
        "encryption.kms.gcp.endpoint": double.url,
        "encryption.kms.gcp.credentials-file": str(file),
        "encryption.kms.retry.initial-delay-ms": "10",
        "encryption.kms.retry.max-delay-ms": "20",
        "encryption.kms.circuit-breaker.failures": "0",
    }


@pytest.fixture
def key(double: GcpKmsDouble) -> str:
    return double.add_key("k1")


@pytest.fixture
def at(
    jvm: Jvm,
    double: GcpKmsDouble,
    key: str,
    properties: dict[str, str],
    authority: TestAuthority,
    faults: Callable[..., FaultProxy],
    tmp_path: Path,
) -> GcpWorld:
    return GcpWorld(jvm, double, key, properties, authority, faults, tmp_path)
