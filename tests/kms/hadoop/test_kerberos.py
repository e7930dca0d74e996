"""A Hadoop KMS that asks for Kerberos: the login of the process, and delegation tokens as YARN gives them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness.jvm import Jvm
from harness.refused import refused
from servers.hadoop_kms import (
    ADMIN,
    USER,
    HadoopKmsServer,
    Kdc,
    start_hadoop_kms,
    start_kdc,
    with_kerberos,
)

from pyspark_iceberg_crypto import HadoopKms, LoginFailedError

pytestmark = pytest.mark.nightly

KEK = b"0123456789abcdef"
KEY = "sales"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kerberos")


@pytest.fixture(scope="module")
def kdc(folder: Path) -> Iterator[Kdc]:
    started = start_kdc(folder / "kdc")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def server(folder: Path, kdc: Kdc) -> Iterator[HadoopKmsServer]:
    started = start_hadoop_kms(folder / "kms", with_kerberos(kdc), [kdc.java])
    yield started
    started.stop()


@pytest.fixture
def jvm(kdc: Kdc, start: Callable[..., Jvm]) -> Jvm:
    return secured(start(options=[kdc.java]))


def secured(started: Jvm) -> Jvm:
    """With Hadoop's security on, and nobody logged in: what a JVM's login is belongs to all of it."""
    configuration = started.view.org.apache.hadoop.conf.Configuration()
    configuration.set("hadoop.security.authentication", "kerberos")
    started.view.org.apache.hadoop.security.UserGroupInformation.setConfiguration(configuration)
    return started


def uri(server: HadoopKmsServer) -> str:
    return f"kms://http@localhost:{server.port}/kms"


def properties(server: HadoopKmsServer) -> dict[str, str]:
    return HadoopKms(uri(server)).properties()


def hadoops_client(jvm: Jvm, kdc: Kdc, server: HadoopKmsServer, user: str):  # type: ignore[no-untyped-def]
    """Hadoop's own, logged in."""
    hadoop = jvm.view.org.apache.hadoop
    hadoop.security.UserGroupInformation.loginUserFromKeytab(user, kdc.keytab(user))
    address = jvm.view.java.net.URI(uri(server))
    provider = hadoop.crypto.key.KeyProviderFactory.get(address, hadoop.conf.Configuration())
    assert provider is not None
    return provider


@pytest.fixture
def key(jvm: Jvm, kdc: Kdc, server: HadoopKmsServer) -> None:
    """Made by Hadoop's own client, once."""
    provider = hadoops_client(jvm, kdc, server, ADMIN)
    hadoop = jvm.view.org.apache.hadoop
    if KEY not in list(provider.getKeys()):
        options = hadoop.crypto.key.KeyProvider.options(hadoop.conf.Configuration())
        provider.createKey(KEY, options.setBitLength(256))


@pytest.mark.usefixtures("key")
def test_kerberos(jvm: Jvm, kdc: Kdc, server: HadoopKmsServer) -> None:
    jvm.view.org.apache.hadoop.security.UserGroupInformation.loginUserFromKeytab(
        USER, kdc.keytab(USER)
    )
    client = jvm.client(properties(server), raw=True)
    blob = client.wrap(KEK, KEY)
    assert client.unwrap(blob, KEY) == KEK
    assert client.travelled().unwrap(blob, KEY) == KEK


@pytest.mark.usefixtures("key")
def test_a_delegation_token(
    jvm: Jvm, kdc: Kdc, server: HadoopKmsServer, start: Callable[..., Jvm]
) -> None:
    """As Hadoop's own client gets it, in a JVM that has no ticket."""
    provider = hadoops_client(jvm, kdc, server, USER)
    hadoop = jvm.view.org.apache.hadoop
    tokens = hadoop.crypto.key.KeyProviderDelegationTokenExtension
    got = tokens.createKeyProviderDelegationTokenExtension(provider).addDelegationTokens(
        USER, hadoop.security.Credentials()
    )
    texts = [token.encodeToUrlString() for token in got]
    assert texts
    other = secured(start(options=[kdc.java]))
    users = other.view.org.apache.hadoop.security.UserGroupInformation
    client = other.client(properties(server), raw=True)
    refused(LoginFailedError, lambda: client.wrap(KEK, KEY), f"'{KEY}'", "there is no login")
    for text in texts:
        token = other.view.org.apache.hadoop.security.token.Token()
        token.decodeFromUrlString(text)
        users.getCurrentUser().addToken(token)
    assert client.unwrap(client.wrap(KEK, KEY), KEY) == KEK
    assert not [text for text in texts if text in client.serialized().decode("latin-1")]


def test_nobody_is_logged_in(jvm: Jvm, server: HadoopKmsServer) -> None:
    client = jvm.client(properties(server), raw=True)
    refused(LoginFailedError, lambda: client.wrap(KEK, KEY), f"'{KEY}'", uri(server))


def test_a_name_is_no_login(jvm: Jvm, server: HadoopKmsServer) -> None:
    kms = HadoopKms(uri(server), user=USER)
    client = jvm.client(kms.properties(), raw=True)
    told = (f"'{KEY}'", "Kerberos")
    refused(LoginFailedError, lambda: client.wrap(KEK, KEY), *told)
    refused(LoginFailedError, lambda: kms.describe_key(KEY), f"'{KEY}'", "hadoop key create")
