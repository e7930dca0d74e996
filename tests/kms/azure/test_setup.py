"""AzureKeyVault, the set-up helper, through Microsoft's own client library against the double in doubles/azure.py."""

import json
import logging
import socket
import subprocess
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.pipeline.transport import RequestsTransport
from doubles.azure import HSM, VAULT, AzureDouble
from doubles.azure_keys import DAY
from doubles.azure_world import SCOPE, AzureWorld
from doubles.faults import FaultProxy
from harness.refused import problem_of

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms.azure import AzureKeyVault

HSM_SCOPE = "https://managedhsm.azure.net/.default"

problem = problem_of("127.0.0.1", "'sales'")


@pytest.fixture(autouse=True)
def login(azure: AzureWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is an application with a secret, and no request leaves this machine."""
    for name, value in azure.as_application("127.0.0.1").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", "*")
    resolve = socket.getaddrinfo

    def only_here(host: Any, *args: Any, **kwargs: Any) -> Any:
        assert host in ("127.0.0.1", "localhost", VAULT, HSM)
        return resolve("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)


@pytest.fixture
def kms(azure: AzureWorld, double: AzureDouble) -> AzureKeyVault:
    return AzureKeyVault(azure.plain_url, token_scope=SCOPE)


@pytest.fixture
def hsm(azure: AzureWorld, double: AzureDouble) -> AzureKeyVault:
    return AzureKeyVault(azure.url(HSM), algorithm="A256KW", token_scope=HSM_SCOPE)


def test_properties() -> None:
    url = "https://lake.vault.azure.net"
    prefix = "encryption.kms.azure"
    standard = {
        "encryption.kms-type": "azure",
        f"{prefix}.vault-url": url,
        f"{prefix}.algorithm": "RSA-OAEP-256",
    }
    assert AzureKeyVault(url).properties() == standard
    chosen = AzureKeyVault(url, algorithm="RSA-OAEP", store_key_version=True, token_scope=SCOPE)
    assert chosen.properties() == standard | {
        f"{prefix}.algorithm": "RSA-OAEP",
        f"{prefix}.store-key-version": "true",
        f"{prefix}.token-scope": SCOPE,
    }


@pytest.mark.parametrize(
    "url", ["", "lake", "http://lake.vault.azure.net", "https://lake.vault.azure.net/keys/k"]
)
def test_not_a_vault(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not the https address"):
        AzureKeyVault(url)


def test_not_an_algorithm() -> None:
    with pytest.raises(ConfigurationError, match="RSA1_5"):
        AzureKeyVault("https://lake.vault.azure.net", algorithm="RSA1_5")


class TestCreate:
    def test_a_key_that_wraps_and_does_nothing_else(
        self, kms: AzureKeyVault, double: AzureDouble
    ) -> None:
        made = kms.create_key("sales")
        assert (made.key_id, made.state, made.algorithm) == ("sales", "enabled", "RSA 3072")
        assert made.versions == 1
        assert made.detail["operations"] == "wrapKey, unwrapKey"
        assert double.keys[VAULT, "sales"].current.id == made.version
        assert kms.describe_key("sales") == made

    def test_size_and_hardware(self, kms: AzureKeyVault) -> None:
        assert kms.create_key("a", key_bits=2048, hardware=True).algorithm == "RSA-HSM 2048"

    def test_aes_in_a_managed_hsm(self, hsm: AzureKeyVault, double: AzureDouble) -> None:
        assert hsm.create_key("sales").algorithm == "oct-HSM"
        assert double.keys[HSM, "sales"].current.size == 256
        assert [key.key_id for key in hsm.list_keys()] == ["sales"]

    def test_name_taken(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        """Azure itself would add a version to it."""
        double.add_key("sales")
        with pytest.raises(ConfigurationError, match="already") as raised:
            kms.create_key("sales")
        problem(raised, "rotate_key")
        assert len(double.keys[VAULT, "sales"].versions) == 1

    def test_name_of_a_deleted_key(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        double.add_key("sales").deleted = int(time.time())
        with pytest.raises(ConfigurationError, match="ObjectIsDeletedButRecoverable") as raised:
            kms.create_key("sales")
        problem(raised, "recover")

    @pytest.mark.parametrize("name", ["", "my_key", "a/b", "k" * 128])
    def test_name_that_cannot_be(self, kms: AzureKeyVault, name: str) -> None:
        with pytest.raises(ConfigurationError, match="cannot be a key's name"):
            kms.create_key(name)

    def test_size_that_cannot_be(self, kms: AzureKeyVault, hsm: AzureKeyVault) -> None:
        with pytest.raises(ConfigurationError, match="1024"):
            kms.create_key("sales", key_bits=1024)
        with pytest.raises(ConfigurationError, match="256 bits"):
            hsm.create_key("sales", key_bits=128)

    def test_aes_in_a_key_vault(self, azure: AzureWorld) -> None:
        kms = AzureKeyVault(azure.plain_url, algorithm="A256KW", token_scope=SCOPE)
        with pytest.raises(ConfigurationError, match="Managed HSM"):
            kms.create_key("sales")


class TestOnce:
    """Azure's library would make a call again after a 503, though the first may have been carried out."""

    @pytest.mark.parametrize("fault", [("status", 503, {}, "<html>"), "reset"])
    @pytest.mark.parametrize("operation", ["create", "rotate"])
    def test_calls_that_change_something(
        self,
        kms: AzureKeyVault,
        double: AzureDouble,
        proxy: FaultProxy,
        operation: str,
        fault: Any,
    ) -> None:
        def call(name: str) -> None:
            kms.create_key(name) if operation == "create" else kms.rotate_key(name)

        if operation == "rotate":
            double.add_key("probe")
            double.add_key("sales")
        call("probe")
        paths = [path.partition("?")[0] for path in proxy.requests]
        before = paths.index(f"POST /keys/probe/{operation}")
        proxy.next = ["pass"] * before + [fault]
        proxy.forget()
        with pytest.raises(KmsUnavailableError) as raised:
            call("sales")
        problem(raised, "describe_key")
        assert sum(f"/sales/{operation}" in path for path in proxy.requests) == 1
        assert len(proxy.requests) == before + 1


class TestList:
    def test_those_that_fit(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        for name in ("d", "b", "c", "a"):  # more than a page
            double.add_key(name)
        double.keys[VAULT, "c"].current.enabled = False
        double.add_key("aes", "oct-HSM", 256)
        double.add_key("elsewhere", host=HSM)
        double.add_key("gone").deleted = int(time.time())
        found = kms.list_keys()
        assert [(key.key_id, key.state) for key in found] == [
            ("a", "enabled"),
            ("b", "enabled"),
            ("c", "disabled"),
            ("d", "enabled"),
        ]
        assert found[0].created is not None

    def test_none(self, kms: AzureKeyVault) -> None:
        assert kms.list_keys() == []


class TestDescribe:
    def test_states(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        key = double.add_key("sales")
        now = int(time.time())
        assert kms.describe_key("sales").state == "enabled"
        key.current.exp = now - DAY
        assert kms.describe_key("sales").state == "expired"
        key.current.nbf, key.current.exp = now + DAY, now + 2 * DAY
        described = kms.describe_key("sales")
        assert described.state == "not yet valid"
        assert {"not before", "expires"} <= described.detail.keys()
        key.current.enabled = False
        assert kms.describe_key("sales").state == "disabled"

    def test_versions_and_forms_of_ids(
        self, kms: AzureKeyVault, double: AzureDouble, azure: AzureWorld
    ) -> None:
        key = double.add_key("sales")
        for _ in range(4):
            key.rotate()
        first = key.versions[0].id
        for key_id, version in {
            "sales": key.current.id,
            f"sales/{first}": first,
            f"{azure.plain_url}/keys/sales": key.current.id,
            f"{azure.plain_url}/keys/sales/{first}": first,
        }.items():
            described = kms.describe_key(key_id)
            assert (described.key_id, described.version) == (key_id, version)
            assert described.versions == 5

    def test_absent(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        with pytest.raises(KeyNotFoundError) as raised:
            kms.describe_key("sales")
        problem(raised, "recover")
        double.add_key("sales").deleted = int(time.time())
        with pytest.raises(KeyNotFoundError):
            kms.describe_key("sales")

    @pytest.mark.parametrize(
        "key_id", ["", "my_key", "a/b/c", "https://other.vault.azure.net/keys/k"]
    )
    def test_id_that_cannot_be(self, kms: AzureKeyVault, key_id: str) -> None:
        with pytest.raises(ConfigurationError, match="cannot be a key's id|not in the vault"):
            kms.describe_key(key_id)


class TestRotate:
    def test_one_version_cannot_be(self, kms: AzureKeyVault) -> None:
        with pytest.raises(NotSupportedError, match="one version") as raised:
            kms.rotate_key("sales/0123456789abcdef0123456789abcdef")
        assert "'sales'" in raised.value.hint


CALLS: dict[str, Callable[[AzureKeyVault], object]] = {
    "create": lambda kms: kms.create_key("sales"),
    "list": lambda kms: kms.list_keys(),
    "get": lambda kms: kms.describe_key("sales"),
    "rotate": lambda kms: kms.rotate_key("sales"),
}


class TestErrors:
    @pytest.fixture(autouse=True)
    def no_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Microsoft's libraries try again at once."""
        monkeypatch.setattr(RequestsTransport, "sleep", lambda transport, seconds: None)

    @pytest.mark.parametrize("operation", CALLS)
    @pytest.mark.parametrize(
        ("inner", "expected"),
        [
            ("ForbiddenByRbac", AccessDeniedError),
            ("ForbiddenByPolicy", AccessDeniedError),
            ("ForbiddenByFirewall", AccessDeniedError),
            ("KeyDisabled", KeyDisabledError),
        ],
    )
    def test_refused(
        self,
        kms: AzureKeyVault,
        double: AzureDouble,
        operation: str,
        inner: str,
        expected: type[IcebergCryptoError],
    ) -> None:
        if operation != "create":
            double.add_key("sales")
        double.denied[operation] = inner
        with pytest.raises(expected, match=inner) as raised:
            CALLS[operation](kms)
        assert type(raised.value) is expected
        assert raised.value.hint

    def test_login_refused(self, kms: AzureKeyVault, double: AzureDouble) -> None:
        double.login.refusal = ("AADSTS7000215", "Invalid client secret provided.")
        with pytest.raises(LoginFailedError, match="AADSTS7000215") as raised:
            kms.describe_key("sales")
        problem(raised, "login refused")

    def test_no_login(self, kms: AzureKeyVault, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AZURE_CLIENT_SECRET")
        with pytest.raises(LoginFailedError) as raised:
            kms.describe_key("sales")
        problem(raised, "az login")

    def test_header_that_cannot_be_sent(
        self,
        kms: AzureKeyVault,
        azure: AzureWorld,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """requests' error shows it, and azure-identity warns with that error."""
        for name, value in azure.as_managed_identity().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("IDENTITY_HEADER", "only-for-tests-header\n")
        caplog.set_level(logging.DEBUG)
        with pytest.raises(LoginFailedError, match="is not a valid header value") as raised:
            kms.describe_key("sales")
        problem(raised, "line break")
        assert "only-for-tests" not in "".join(traceback.format_exception(raised.value))
        assert "azure.identity" in {record.name.rpartition("._")[0] for record in caplog.records}
        assert "only-for-tests" not in caplog.text

    @pytest.mark.parametrize("mode", ["down", ("status", 503, {}, "{}"), ("status", 429, {}, "{}")])
    def test_unavailable(
        self,
        kms: AzureKeyVault,
        proxy: FaultProxy,
        azure: AzureWorld,
        monkeypatch: pytest.MonkeyPatch,
        mode: Any,
    ) -> None:
        for name, value in azure.as_managed_identity().items():  # past the proxy
            monkeypatch.setenv(name, value)
        proxy.mode = mode
        with pytest.raises(KmsUnavailableError) as raised:
            kms.describe_key("sales")
        problem(raised)

    @pytest.mark.parametrize("mode", ["down", ("status", 503, {}, "{}")])
    def test_login_service_unavailable(
        self, kms: AzureKeyVault, proxy: FaultProxy, mode: Any
    ) -> None:
        kms.list_keys()  # the vault has told where to log in
        proxy.mode = mode
        with pytest.raises(KmsUnavailableError, match="login service") as raised:
            kms.describe_key("sales")
        problem(raised)

    def test_certificate_not_trusted(
        self, kms: AzureKeyVault, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        with pytest.raises(ConfigurationError, match="not trusted") as raised:
            kms.describe_key("sales")
        problem(raised, "REQUESTS_CA_BUNDLE")


class TestDriverPolicy:
    """Run by a shell in which az only tells its arguments."""

    def said(self, policy: str) -> list[list[str]]:
        assert policy.startswith("# ")
        script = 'az() { printf "%s\\0" "$@" >&3; printf "\\n\\0" >&3; echo /id-of-the-vault; }\n'
        done = subprocess.run(
            [
                "bash",
                "-euc",
                f"exec 3>&1 >/dev/null\nPRINCIPAL_ID=p\nSUBSCRIPTION_ID=s\n{script}{policy}",
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        calls: list[list[str]] = [[]]
        for word in done.stdout.split("\0")[:-1]:
            if word == "\n":
                calls.append([])
            else:
                calls[-1].append(word)
        return calls[:-1]

    def test_key_vault(self) -> None:
        kms = AzureKeyVault("https://lake.vault.azure.net")
        role, show, *grants = self.said(kms.driver_policy(["sales", "hr/0123", "sales"]))
        assert role[:3] == ["role", "definition", "create"]
        definition = json.loads(role[-1])
        assert definition["DataActions"] == [
            f"Microsoft.KeyVault/vaults/keys/{verb}"
            for verb in ("wrap/action", "unwrap/action", "read")
        ]
        assert "Actions" not in definition
        assert definition["AssignableScopes"] == ["/subscriptions/s"]
        assert show[show.index("--name") + 1] == "lake"
        assert [grant[-1] for grant in grants] == [
            "/id-of-the-vault/keys/hr",
            "/id-of-the-vault/keys/sales",
        ]
        assert all(definition["Name"] in grant and "p" in grant for grant in grants)

    @pytest.mark.parametrize(
        ("kms", "keys"),
        [
            (AzureKeyVault("https://lake.vault.azure.net", store_key_version=True), ["sales"]),
            (AzureKeyVault("https://lake.vault.azure.net"), ["sales/0123"]),
        ],
    )
    def test_no_more_than_needed(self, kms: AzureKeyVault, keys: list[str]) -> None:
        """Where no version must be looked for, nothing is read."""
        role, *_ = self.said(kms.driver_policy(keys))
        assert len(json.loads(role[-1])["DataActions"]) == 2

    def test_managed_hsm(self) -> None:
        kms = AzureKeyVault("https://lake.managedhsm.azure.net", algorithm="A256KW")
        (grant,) = self.said(kms.driver_policy(["sales"]))
        assert grant[grant.index("--hsm-name") + 1] == "lake"
        assert grant[grant.index("--role") + 1] == "Managed HSM Crypto Service Encryption User"
        assert grant[-1] == "/keys/sales"
