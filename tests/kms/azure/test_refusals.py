"""What the Azure client makes of bad blobs, refusals, and wrong properties; against the double in doubles/azure.py."""

import time
from typing import Any

import pytest
from doubles.azure import AzureDouble
from doubles.azure_keys import DAY, Key
from doubles.azure_world import AzureWorld, flipped
from doubles.faults import FaultProxy
from harness.jvm import Client, Jvm
from harness.refused import problem_of

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.azure."
STORE = {f"{PREFIX}store-key-version": "true"}

problem = problem_of("Azure", ".azure.net:", secrets=("only-for-tests", DEK.decode()))


class TestBadBlobs:
    def test_stored_version_damaged(
        self, jvm: Jvm, properties: dict[str, str], client: Client, key: Key
    ) -> None:
        blob = jvm.client(properties | STORE, raw=True).wrap(DEK, "sales")
        body = blob.index(key.current.id.encode())
        for damaged in (
            blob[: body - 1],  # no length
            blob[: body + 32],  # no key
            blob[:body] + b"../secrets/other".ljust(32, b"x") + blob[body + 32 :],
            flipped(blob, -1),
        ):
            with pytest.raises(BadWrappedKeyError) as raised:
                client.unwrap(damaged, "sales")
            problem(raised, "'sales'")
        other = blob[:body] + b"0" * 32 + blob[body + 32 :]
        with pytest.raises(KeyNotFoundError):
            client.unwrap(other, "sales")

    def test_a_missing_version_is_no_missing_key(
        self, jvm: Jvm, properties: dict[str, str], key: Key
    ) -> None:
        """As after a restore from an old backup; the vault says the same of both."""
        key.rotate()
        pinned = f"sales/{key.current.id}"
        client = jvm.client(properties, raw=True)
        stored = jvm.client(properties | STORE, raw=True)
        blobs = [
            (client, client.wrap(DEK, pinned), pinned),
            (stored, stored.wrap(DEK, "sales"), "sales"),
        ]
        key.versions.pop()
        for deleted in (None, int(time.time())):
            key.deleted = deleted
            for asked, blob, key_id in blobs:
                with pytest.raises(KeyNotFoundError) as raised:
                    asked.unwrap(blob, key_id)
                error: Any = raised.value.__cause__
                of_key = jvm.view.io.icebergcrypto.kms.call.Causes.isOfKey(error.java_exception)
                assert of_key == (deleted is not None)

    def test_a_vault_that_fails_does_not_say_what_is_missing(
        self, jvm: Jvm, properties: dict[str, str], key: Key, proxy: FaultProxy
    ) -> None:
        client = jvm.client(properties, raw=True)
        pinned = f"sales/{key.current.id}"
        blob = client.wrap(DEK, pinned)
        key.deleted = int(time.time())
        proxy.next = ["pass", ("status", 503, {}, "")]
        with pytest.raises(KmsUnavailableError):
            client.unwrap(blob, pinned)

    def test_answers_that_no_vault_gives(
        self, client: Client, key: Key, double: AzureDouble
    ) -> None:
        for damage in (
            lambda answer: {},
            lambda answer: answer | {"value": "?"},
            lambda answer: answer | {"kid": "https://elsewhere/keys/other/0"},
        ):
            double.damage = damage
            with pytest.raises(ConfigurationError, match="not an answer of Key Vault") as raised:
                client.wrap(DEK, "sales")
            problem(raised, "'sales'")


class TestRefusals:
    def test_deleted_and_recovered(self, client: Client, key: Key) -> None:
        blob = client.wrap(DEK, "sales")
        key.deleted = int(time.time())
        for call in (client.wrap, client.unwrap):
            with pytest.raises(KeyNotFoundError) as raised:
                call(blob[:16], "sales")
            problem(raised, "'sales'", "az keyvault key recover --name sales")
        key.deleted = None
        assert client.unwrap(blob, "sales") == DEK

    @pytest.mark.parametrize("attribute", ["exp", "nbf"])
    def test_outside_its_dates(self, client: Client, key: Key, attribute: str) -> None:
        """It does not wrap, and does unwrap, as Azure has it: so that data can be had back."""
        blob = client.wrap(DEK, "sales")
        away = DAY if attribute == "nbf" else -DAY
        setattr(key.current, attribute, int(time.time()) + away)
        with pytest.raises(KeyDisabledError, match="not yet valid|expired") as raised:
            client.wrap(DEK, "sales")
        problem(raised, "'sales'")
        assert client.unwrap(blob, "sales") == DEK

    @pytest.mark.parametrize(
        ("inner", "hint"),
        [
            ("ForbiddenByPolicy", "driver_policy"),
            ("ForbiddenByRbac", "Key Vault Crypto Service Encryption User"),
            ("AccessDenied", "driver_policy"),
            ("ForbiddenByFirewall", "firewall"),
            ("ForbiddenByConnection", "private endpoint"),
        ],
    )
    @pytest.mark.parametrize("operation", ["wrapkey", "unwrapkey"])
    def test_permission_missing(
        self, client: Client, key: Key, double: AzureDouble, operation: str, inner: str, hint: str
    ) -> None:
        blob = client.wrap(DEK, "sales")
        double.denied[operation] = inner
        with pytest.raises(AccessDeniedError, match="may not") as raised:
            client.wrap(DEK, "sales") if operation == "wrapkey" else client.unwrap(blob, "sales")
        problem(raised, "'sales'", inner)
        assert type(raised.value) is AccessDeniedError
        assert hint in raised.value.hint

    def test_operation_not_among_the_keys(self, client: Client, key: Key) -> None:
        key.current.ops = ["sign", "verify"]
        with pytest.raises(NotSupportedError) as raised:
            client.wrap(DEK, "sales")
        problem(raised, "'sales'", "--ops wrapKey unwrapKey")
        with pytest.raises(NotSupportedError):
            client.unwrap(b"x" * 256, "sales")

    def test_algorithm_does_not_fit(self, jvm: Jvm, properties: dict[str, str], key: Key) -> None:
        client = jvm.client(properties | {f"{PREFIX}algorithm": "A256KW"}, raw=True)
        for call in (client.wrap, client.unwrap):
            with pytest.raises(NotSupportedError, match="incompatible") as raised:
                call(DEK, "sales")
            problem(raised, "'sales'", "A256KW", f"{PREFIX}algorithm")


class TestProperties:
    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({f"{PREFIX}vault-url": None}, "vault-url is missing"),
            ({f"{PREFIX}vault-url": "http://lake.vault.azure.net"}, "not the https address"),
            ({f"{PREFIX}vault-url": "lake.vault.azure.net"}, "not the https address"),
            (
                {f"{PREFIX}vault-url": "https://lake.vault.azure.net/keys/sales"},
                "not the https address",
            ),
            ({f"{PREFIX}vault-url": "https://u:p@lake.vault.azure.net"}, "not the https address"),
            ({f"{PREFIX}vault-url": "https://lake.example.com"}, "not one of Azure's own hosts"),
            (
                {f"{PREFIX}vault-url": "https://vault.azure.net.evil.org"},
                "not one of Azure's own hosts",
            ),
            ({"azure.keyvault.url": "https://other.vault.azure.net"}, "contradict each other"),
            ({f"{PREFIX}algorithm": "RSA1_5"}, "'RSA1_5'"),
            ({"azure.keyvault.key-wrap-algorithm": "RSA1_5"}, "key-wrap-algorithm"),
            ({f"{PREFIX}algorithm": "rsa"}, "'rsa'"),
            (
                {f"{PREFIX}algorithm": "RSA-OAEP", "azure.keyvault.key-wrap-algorithm": "A256KW"},
                "contradict each other",
            ),
            ({f"{PREFIX}store-key-version": "yes"}, "neither true nor false"),
            ({f"{PREFIX}versions-to-try": "0"}, "1 or more"),
            ({"encryption.kms.call-timeout-ms": "soon"}, "call-timeout-ms"),
        ],
    )
    def test_bad(
        self, jvm: Jvm, properties: dict[str, str], changed: dict[str, str | None], words: str
    ) -> None:
        given = {k: v for k, v in (properties | changed).items() if v is not None}
        with pytest.raises(ConfigurationError, match=words) as raised:
            jvm.client(given)
        assert raised.value.hint

    @pytest.mark.parametrize("same", ["{}", "{}/", "HTTPS://LAKE.vault.azure.net:{port}//"])
    def test_icebergs_own_names(
        self, jvm: Jvm, azure: AzureWorld, properties: dict[str, str], key: Key, same: str
    ) -> None:
        url = same.format(azure.url(), port=azure.proxy.port)
        stock = {"azure.keyvault.url": url, "azure.keyvault.key-wrap-algorithm": "RSA-OAEP-256"}
        alone = {"encryption.kms-type": "azure", **stock}
        for given in (alone, properties | stock | {f"{PREFIX}algorithm": "RSA-OAEP-256"}):
            client = jvm.client(given, raw=True)
            assert client.text() == f"Azure Key Vault at {azure.url()}"
            assert client.unwrap(client.wrap(DEK, "sales"), "sales") == DEK

    def test_the_port_that_https_has_anyway(self, jvm: Jvm) -> None:
        """Azure writes it into the links to next pages."""
        given = {
            "encryption.kms-type": "azure",
            f"{PREFIX}vault-url": "https://lake.vault.azure.net:443/",
            "azure.keyvault.url": "https://lake.vault.azure.net",
        }
        assert jvm.client(given).text() == "Azure Key Vault at https://lake.vault.azure.net"

    def test_other_clouds_name_their_scope(self, jvm: Jvm, azure: AzureWorld, key: Key) -> None:
        given = {
            "encryption.kms-type": "azure",
            f"{PREFIX}vault-url": azure.plain_url,
            f"{PREFIX}token-scope": "https://vault.azure.net/.default",
        }
        client = jvm.client(given, raw=True)
        assert client.unwrap(client.wrap(DEK, "sales"), "sales") == DEK
