"""Java's system properties name the proxy of every KMS: the clouds' own libraries, and their logins, follow."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles.azure_world import LOGIN, AzureWorld, start_azure
from doubles.connect import ConnectProxy
from doubles.faults import FaultProxy
from doubles.gcp import GcpKmsDouble
from harness.jvm import Jvm, start_jvm

from pyspark_iceberg_crypto.errors import ConfigurationError

pytestmark = pytest.mark.nightly  # by day, ProxiesTest has the rules

DEK = b"0123456789abcdef"
ONE_ATTEMPT = {"encryption.kms.retry.max-attempts": "1"}


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureWorld]:
    world = start_azure(tmp_path_factory.mktemp("azure"))
    world.double.add_key("sales")
    yield world
    world.stop()


@pytest.fixture(scope="module")
def proxy() -> Iterator[ConnectProxy]:
    started = ConnectProxy().start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def jvm(
    azure: AzureWorld, proxy: ConnectProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jvm]:
    """For this JVM the doubles' hosts have no addresses: only the proxy reaches them."""
    started = start_jvm(
        tmp_path_factory.mktemp("jvm") / "log",
        {**azure.as_application(), "NO_GCE_CHECK": "true", "HTTPS_PROXY": "http://127.0.0.1:1"},
        [*azure.trusting_options, *proxy.java_options],
    )
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def _tunnels(proxy: ConnectProxy) -> None:
    proxy.wants_login = False
    proxy.asked.clear()


def test_azure(jvm: Jvm, azure: AzureWorld, proxy: ConnectProxy) -> None:
    properties = {
        "encryption.kms-type": "azure",
        "encryption.kms.azure.vault-url": azure.url(),
        **ONE_ATTEMPT,
    }
    client = jvm.client(properties, raw=True)
    assert client.unwrap(client.wrap(DEK, "sales"), "sales") == DEK
    assert set(proxy.asked) == {
        f"{LOGIN}:{azure.proxy.port}",
        azure.url().removeprefix("https://"),
    }
    proxy.wants_login = True
    with pytest.raises(ConfigurationError) as raised:
        jvm.client(properties, raw=True).wrap(DEK, "sales")
    is_told(str(raised.value), proxy, "'sales'", "the login service is behind a proxy")


def test_google_cloud(
    jvm: Jvm,
    azure: AzureWorld,
    proxy: ConnectProxy,
    faults: Callable[..., FaultProxy],
    tmp_path: Path,
) -> None:
    double = GcpKmsDouble().start()
    try:
        host = f"{LOGIN}:{faults(double.port, azure.authority.server).port}"
        file = double.login.service_account(
            tmp_path / "account.json", token_uri=f"https://{host}/token"
        )
        properties = {
            "encryption.kms-type": "gcp",
            "encryption.kms.gcp.endpoint": f"https://{host}",
            "encryption.kms.gcp.credentials-file": str(file),
            **ONE_ATTEMPT,
        }
        key = double.add_key("k1")
        client = jvm.client(properties, raw=True)
        assert client.unwrap(client.wrap(DEK, key), key) == DEK
        assert proxy.asked == [host, host]  # the login, and Cloud KMS
        proxy.wants_login = True
        # another name, for which Java has no tunnel yet
        double.login.service_account(file, token_uri=f"https://new.{host}/token")
        with pytest.raises(ConfigurationError) as raised:
            jvm.client(properties, raw=True).wrap(DEK, key)
        is_told(str(raised.value), proxy, key, "the login for key", "is behind a proxy")
    finally:
        double.stop()


def test_a_machine_s_metadata_service_is_asked_without_it(
    azure: AzureWorld, proxy: ConnectProxy, tmp_path: Path
) -> None:
    jvm = start_jvm(
        tmp_path / "log", azure.as_machine(), [*azure.trusting_options, *proxy.java_options]
    )
    try:
        vault = {"encryption.kms-type": "azure", "encryption.kms.azure.vault-url": azure.url()}
        jvm.client(vault | ONE_ATTEMPT, raw=True).wrap(DEK, "sales")
        assert set(proxy.asked) == {azure.url().removeprefix("https://")}
    finally:
        jvm.stop()


def is_told(error: str, proxy: ConnectProxy, *texts: str) -> None:
    for text in (*texts, "(HTTP 407)", f"127.0.0.1:{proxy.port}", "http.nonProxyHosts"):
        assert text in error
