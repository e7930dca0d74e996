"""The Azure client against the double in doubles/azure.py: blobs, key ids, versions, and the vault's refusals."""

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.hashes import SHA256
from doubles.azure import HSM, VAULT, AzureDouble
from doubles.azure_keys import Key
from doubles.azure_login import CLIENT_SECRET
from doubles.azure_world import OTHER_SOCKETS, SCOPE, AzureWorld, asked, flipped
from harness.jvm import Client, Jvm
from harness.refused import problem_of

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KeyDisabledError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms.azure import AzureKeyVault

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.azure."
STORE = {f"{PREFIX}store-key-version": "true"}
STOCK = "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient"

problem = problem_of("Azure", ".azure.net:", secrets=("only-for-tests", DEK.decode()))


@pytest.mark.nightly
def test_aes_of_a_managed_hsm(
    jvm: Jvm, properties: dict[str, str], azure: AzureWorld, double: AzureDouble
) -> None:
    double.add_key("hsm", "oct-HSM", 256, HSM)
    settings = {f"{PREFIX}vault-url": azure.url(HSM), f"{PREFIX}algorithm": "A256KW"}
    client = jvm.client(properties | settings, raw=True)
    assert client.text() == f"Azure Managed HSM at {azure.url(HSM)}"
    blob = client.wrap(DEK, "hsm")
    assert len(blob) == len(DEK) + 8
    assert client.unwrap(blob, "hsm") == DEK
    assert client.authenticates("hsm")
    for place in (0, 9, -1):
        with pytest.raises(BadWrappedKeyError):
            client.unwrap(flipped(blob, place), "hsm")
    with pytest.raises(NotSupportedError, match="17 bytes") as raised:
        client.wrap(b"x" * 17, "hsm")
    problem(raised, "'hsm'")
    double.keys[HSM, "hsm"].rotate()
    assert client.unwrap(blob, "hsm") == DEK


@pytest.mark.parametrize(
    "algorithm", ["RSA-OAEP-256", pytest.param("RSA-OAEP", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    "property_name", [f"{PREFIX}algorithm", "azure.keyvault.key-wrap-algorithm"]
)
def test_rsa_oaep(
    jvm: Jvm, properties: dict[str, str], key: Key, algorithm: str, property_name: str
) -> None:
    client = jvm.client(properties | {property_name: algorithm}, raw=True)
    blob = client.wrap(DEK, "sales")
    assert key.current.use("kid", "unwrapkey", algorithm, blob) == DEK
    assert client.unwrap(blob, "sales") == DEK
    assert not client.authenticates("sales")


def test_anybody_wraps_for_an_rsa_key(client: Client, key: Key) -> None:
    """Why its wrapping is not authenticated: the public half is all it takes."""
    scheme = OAEP(MGF1(SHA256()), SHA256(), None)
    blob = key.current.secret.public_key().encrypt(b"the attacker's..", scheme)
    assert client.unwrap(blob, "sales") == b"the attacker's.."
    assert not client.authenticates("sales")


@pytest.fixture(scope="module")
def stock(jvm: Jvm, azure: AzureWorld) -> Client:
    return jvm.client({"encryption.kms-impl": STOCK, "azure.keyvault.url": azure.url()}, raw=True)


def requested(azure: AzureWorld) -> list[str]:
    """What the vault was asked for, in this order, however often: what is not answered in time is asked again."""
    asked_for = (r.partition("?")[0] for r in azure.proxy.requests if "oauth2" not in r)
    return list(dict.fromkeys(asked_for))


class TestIcebergsOwnClient:
    """What Iceberg's AzureKeyManagementClient, and so stock Spark or Trino, makes of our blobs and we of its."""

    @pytest.mark.parametrize("version", ["", "/VERSION"])
    def test_both_ways(self, stock: Client, client: Client, key: Key, version: str) -> None:
        key_id = "sales" + version.replace("VERSION", key.current.id)
        assert client.unwrap(stock.wrap(DEK, key_id), key_id) == DEK
        assert stock.unwrap(client.wrap(DEK, key_id), key_id) == DEK

    def test_the_same_requests_for_a_wrap(
        self, stock: Client, client: Client, key: Key, azure: AzureWorld
    ) -> None:
        """Its own, less the one that gets the key; paths alike to the slash."""
        azure.proxy.forget()
        stock.wrap(DEK, "sales")
        assert requested(azure) == ["GET /keys/sales/", "POST /keys/sales//wrapkey"]
        azure.proxy.forget()
        client.wrap(DEK, "sales")
        assert requested(azure) == ["POST /keys/sales//wrapkey"]

    def test_after_a_rotation(self, stock: Client, client: Client, key: Key) -> None:
        blob = stock.wrap(DEK, "sales")
        key.rotate()
        assert client.unwrap(blob, "sales") == DEK
        with pytest.raises(Exception, match="decoding OAEP padding"):
            stock.unwrap(blob, "sales")

    def test_not_with_a_stored_version(
        self, jvm: Jvm, stock: Client, properties: dict[str, str], key: Key
    ) -> None:
        blob = jvm.client(properties | STORE, raw=True).wrap(DEK, "sales")
        with pytest.raises(Exception, match="decoding OAEP padding"):
            stock.unwrap(blob, "sales")


class TestVersions:
    """A rotation must not make old tables unreadable."""

    def test_old_blobs_unwrap_and_the_version_is_remembered(
        self, jvm: Jvm, client: Client, properties: dict[str, str], key: Key, double: AzureDouble
    ) -> None:
        first = key.current.id
        old = client.wrap(DEK, "sales")
        for _ in range(4):
            key.rotate()
        fresh = jvm.client(properties, raw=True)  # as in a new session, which remembers nothing
        asked(double)
        assert fresh.unwrap(old, "sales") == DEK
        seen = asked(double)
        assert seen[0] == "unwrapkey 400"
        assert seen[1:3] == ["versions", "versions"]  # two pages
        assert seen[3:] == [
            *(f"unwrapkey {version.id} 400" for version in reversed(key.versions[1:])),
            f"unwrapkey {first}",
        ]
        assert fresh.unwrap(old, "sales") == DEK
        assert asked(double) == [f"unwrapkey {first}"]

        new = fresh.wrap(b"N" * 32, "sales")
        asked(double)
        assert fresh.unwrap(new, "sales") == b"N" * 32
        assert asked(double) == [f"unwrapkey {key.current.id}"]
        assert fresh.unwrap(old, "sales") == DEK
        assert asked(double) == [f"unwrapkey {key.current.id} 400", f"unwrapkey {first}"]

    def test_a_copy_that_travelled(self, client: Client, key: Key) -> None:
        old = client.wrap(DEK, "sales")
        key.rotate()
        assert client.travelled().unwrap(old, "sales") == DEK

    def test_current_version_is_asked_first(
        self, client: Client, key: Key, double: AzureDouble
    ) -> None:
        key.rotate()
        blob = key.current.use("kid", "wrapkey", "RSA-OAEP-256", DEK)
        assert client.unwrap(blob, "sales") == DEK
        assert asked(double) == ["unwrapkey"]

    def test_older_version_disabled(self, client: Client, key: Key) -> None:
        old = client.wrap(DEK, "sales")
        key.rotate()
        key.versions[0].enabled = False
        with pytest.raises(KeyDisabledError, match=key.versions[0].id) as raised:
            client.unwrap(old, "sales")
        problem(raised, "'sales'")
        key.versions[0].enabled = True
        assert client.unwrap(old, "sales") == DEK

    def test_current_version_disabled(self, client: Client, key: Key) -> None:
        """What older ones wrapped can be read; nothing new is written."""
        old = client.wrap(DEK, "sales")
        key.rotate()
        new = client.wrap(DEK, "sales")
        key.current.enabled = False
        assert client.unwrap(old, "sales") == DEK
        with pytest.raises(KeyDisabledError):
            client.unwrap(new, "sales")
        with pytest.raises(KeyDisabledError):
            client.wrap(DEK, "sales")

    def test_versions_may_not_be_listed(
        self, jvm: Jvm, client: Client, properties: dict[str, str], key: Key, double: AzureDouble
    ) -> None:
        old = client.wrap(DEK, "sales")
        key.rotate()
        double.denied["list"] = "ForbiddenByPolicy"
        with pytest.raises(AccessDeniedError, match="may not list the older versions") as raised:
            jvm.client(properties, raw=True).unwrap(old, "sales")
        problem(raised, "'sales'", "ForbiddenByPolicy")
        assert "list" in raised.value.hint

    def test_no_more_versions_are_tried_than_allowed(
        self, jvm: Jvm, client: Client, properties: dict[str, str], key: Key, double: AzureDouble
    ) -> None:
        old = client.wrap(DEK, "sales")
        for _ in range(4):
            key.rotate()
        limit = {f"{PREFIX}versions-to-try": "3"}
        bounded = jvm.client(properties | limit, raw=True)
        asked(double)
        with pytest.raises(ConfigurationError, match="of the 5 versions .* 3 were tried") as raised:
            bounded.unwrap(old, "sales")
        problem(raised, "'sales'", f"{PREFIX}versions-to-try")
        assert sum(word.startswith("unwrapkey") for word in asked(double)) == 3

    def test_stored_version(
        self, jvm: Jvm, properties: dict[str, str], client: Client, key: Key, double: AzureDouble
    ) -> None:
        storing = jvm.client(properties | STORE, raw=True)
        blob = storing.wrap(DEK, "sales")
        version = key.current.id.encode()
        head = b"ICWK\x01\x05azure" + bytes(4) + bytes([len(version)]) + version
        assert blob.startswith(head)
        assert len(blob) == len(head) + 256
        for _ in range(2):
            key.rotate()
        for reader in (storing, client, client.travelled()):
            asked(double)
            assert reader.unwrap(blob, "sales") == DEK
            assert asked(double) == [f"unwrapkey {version.decode()}"]
        raw = client.wrap(DEK, "sales")
        assert storing.unwrap(raw, "sales") == DEK


class TestKeyIds:
    @pytest.mark.parametrize(
        "form", ["NAME", "NAME/VERSION", "URL/keys/NAME", "URL/keys/NAME/VERSION"]
    )
    def test_forms(
        self, client: Client, azure: AzureWorld, key: Key, double: AzureDouble, form: str
    ) -> None:
        version = key.current.id
        key_id = (
            form.replace("URL", azure.url()).replace("NAME", "sales").replace("VERSION", version)
        )
        blob = client.wrap(DEK, key_id)
        assert asked(double) == [f"wrapkey {version}" if "VERSION" in form else "wrapkey"]
        assert client.unwrap(blob, key_id) == DEK

    def test_pinned_version(
        self, jvm: Jvm, properties: dict[str, str], client: Client, key: Key, double: AzureDouble
    ) -> None:
        first = f"sales/{key.current.id}"
        blob = client.wrap(DEK, first)
        second = f"sales/{key.rotate().id}"
        assert client.unwrap(blob, first) == DEK
        with pytest.raises(BadWrappedKeyError):
            client.unwrap(blob, second)
        stored = jvm.client(properties | STORE, raw=True).wrap(DEK, first)
        asked(double)
        with pytest.raises(BadWrappedKeyError, match="was wrapped by its version") as raised:
            client.unwrap(stored, second)
        problem(raised, first.partition("/")[2], second)
        assert asked(double) == []

    @pytest.mark.parametrize(
        "key_id", ["my_key", "", "a/b/c", "../secrets/x", "sales?x=1", "https:// "]
    )
    def test_impossible(self, client: Client, double: AzureDouble, key_id: str) -> None:
        with pytest.raises(ConfigurationError, match="cannot be the id of a key") as raised:
            client.wrap(DEK, key_id)
        problem(raised, f"'{key_id}'")
        assert asked(double) == []

    @pytest.mark.parametrize(
        "url", ["https://other.vault.azure.net", "https://lake.vault.azure.net"]
    )
    def test_other_vault(
        self, client: Client, azure: AzureWorld, double: AzureDouble, url: str
    ) -> None:
        """The last is this vault's name with another port."""
        with pytest.raises(ConfigurationError, match="in another vault") as raised:
            client.unwrap(b"x" * 256, f"{url}/keys/sales")
        problem(raised, url, azure.url())
        assert asked(double) == []


@pytest.mark.parametrize("name", ["client-secret", "sasToken", "password"])
def test_a_secret_for_the_credential_provider_is_refused(
    jvm: Jvm, properties: dict[str, str], name: str
) -> None:
    """It would travel. The names of files and variables may."""
    provider = "adls.token-credential-provider"
    settings = properties | {provider: "com.acme.Provider"}
    with pytest.raises(ConfigurationError, match="would show a secret") as raised:
        jvm.client(settings | {f"{provider}.{name}": CLIENT_SECRET})
    assert f"{provider}.{name}" in raised.value.message
    assert "only-for-tests" not in str(raised.value)
    named = jvm.client(settings | {f"{provider}.{name}-file": "/etc/acme"})
    assert b"/etc/acme" in named.serialized()


@pytest.mark.nightly
def test_the_double_is_asked_over_tls(
    azure: AzureWorld, properties: dict[str, str], start: Callable[..., Jvm]
) -> None:
    """A JVM that does not trust the vault's certificate says so, and is not made to try again."""
    options = [f"-Djdk.net.hosts.file={azure.hosts}", OTHER_SOCKETS]
    stranger = start(azure.as_managed_identity(), options)
    with pytest.raises(ConfigurationError, match="certificate is not trusted") as raised:
        stranger.client(properties).wrap(DEK, "sales")
    assert VAULT in str(raised.value)


def test_properties_of_the_python_class(jvm: Jvm, azure: AzureWorld, key: Key) -> None:
    here = AzureKeyVault(azure.url(), store_key_version=True)
    client = jvm.client(here.properties(), raw=True)
    blob = client.wrap(DEK, "sales")
    assert blob.startswith(b"ICWK")
    there = AzureKeyVault(azure.plain_url, token_scope=SCOPE)
    assert jvm.client(there.properties(), raw=True).unwrap(blob, "sales") == DEK
