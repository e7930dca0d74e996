"""Fixtures: the double of Azure with a key in it, and a JVM that is logged in to it."""

from collections.abc import Iterator

import pytest
from doubles.azure import AzureDouble
from doubles.azure_keys import Key
from doubles.azure_world import AzureWorld, start_azure
from doubles.faults import FaultProxy
from harness.jvm import Client, Jvm, start_jvm


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureWorld]:
    """A double of Azure Key Vault and its login, by https under its real names."""
    world = start_azure(tmp_path_factory.mktemp("azure"))
    yield world
    world.stop()


@pytest.fixture(scope="session")
def jvm(azure: AzureWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """A JVM on a host with an application's secret, for which the vaults have their real names."""
    log = tmp_path_factory.mktemp("azure-jvm") / "log"
    started = start_jvm(log, azure.as_application(), azure.java_options)
    yield started
    started.stop()
    assert "only-for-tests" not in log.read_text()


@pytest.fixture
def double(azure: AzureWorld) -> Iterator[AzureDouble]:
    yield azure.double
    azure.double.keys.clear()
    azure.double.denied.clear()
    azure.double.damage = None
    azure.double.login.refusal = None


@pytest.fixture
def proxy(azure: AzureWorld) -> Iterator[FaultProxy]:
    azure.proxy.forget()
    yield azure.proxy
    azure.proxy.next.clear()
    azure.proxy.mode = "pass"


@pytest.fixture
def key(double: AzureDouble) -> Key:
    return double.add_key("sales")


@pytest.fixture
def properties(azure: AzureWorld) -> dict[str, str]:
    return {"encryption.kms-type": "azure", "encryption.kms.azure.vault-url": azure.url()}


@pytest.fixture
def client(jvm: Jvm, properties: dict[str, str], azure: AzureWorld) -> Client:
    """The KMS's own client, not asked anything yet."""
    made = jvm.client(properties, raw=True)
    azure.double.requests.clear()
    return made
