"""The Azure client when the vault, the network or the login fails; against the double in doubles/azure.py."""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from doubles.azure import AzureDouble
from doubles.azure_keys import Key
from doubles.azure_login import IDENTITY_HEADER
from doubles.azure_world import AzureWorld
from doubles.faults import FaultProxy
from harness.jvm import Client, Jvm
from harness.refused import problem_of
from harness.subject import QUICK
from harness.tls import self_signed

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
)

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.azure."
BUSY = '{"error": {"code": "Throttled", "message": "Request was not processed because too many requests"}}'

pytestmark = pytest.mark.usefixtures("key")
problem = problem_of(
    "Azure Key Vault at https://lake.vault.azure.net:",
    "'sales'",
    secrets=("only-for-tests", DEK.decode()),
)


@pytest.fixture
def double(double: AzureDouble) -> Iterator[AzureDouble]:
    yield double
    double.login.__init__()  # type: ignore[misc]


@pytest.fixture
def properties(properties: dict[str, str]) -> dict[str, str]:
    return properties | QUICK


@pytest.fixture
def client(jvm: Jvm, properties: dict[str, str]) -> Client:
    """Logged in already."""
    made = jvm.client(properties)
    made.wrap(DEK, "sales")
    return made


FAULTS: dict[str, tuple[Any, str]] = {
    "down": ("down", "cannot be reached"),
    "reset": ("reset", "cannot be reached"),
    "throttled": (("status", 429, {"Retry-After": "1"}, BUSY), "HTTP 429 Throttled"),
    "broken": (("status", 500, {}, "oops"), "HTTP 500"),
    "unavailable": (("status", 503, {}, "<html>"), "HTTP 503"),
}


class TestVault:
    @pytest.mark.nightly
    def test_a_search_goes_on_where_the_last_attempt_ended(
        self, jvm: Jvm, properties: dict[str, str], proxy: FaultProxy, key: Key
    ) -> None:
        """Nine versions and two other requests of 200 ms each do not fit into one call's 1.5 s."""
        blob = jvm.client(properties, raw=True).wrap(DEK, "sales")
        for _ in range(8):
            key.rotate()
        limits = {
            "encryption.kms.call-timeout-ms": "1500",
            "encryption.kms.retry.max-attempts": "4",
        }
        client = jvm.client(properties | limits)
        client.wrap(DEK, "sales")  # logged in
        proxy.forget()
        proxy.mode = "slow"
        assert client.unwrap(blob, "sales") == DEK
        assert client.metrics()["retries"] >= 1
        asked = [path.split("/")[-2] for path in proxy.requests if "unwrapkey" in path]
        older = [version.id for version in key.versions[1:-1]]
        assert all(asked.count(version) <= 2 for version in older)  # twice: cut short in between

    @pytest.mark.parametrize("status", [200, 302, 404, 405])
    def test_no_vault(self, client: Client, proxy: FaultProxy, status: int) -> None:
        """A proxy's page, say. Tokens do not follow a redirect."""
        proxy.forget()
        proxy.mode = ("status", status, {"Location": "https://127.0.0.1/"}, "<html>")
        with pytest.raises(ConfigurationError, match="not an answer of Key Vault") as raised:
            client.wrap(DEK, "sales")
        problem(raised)
        assert len(proxy.requests) == 1

    def test_what_a_vault_repeats_of_a_request_is_not_told(
        self, client: Client, proxy: FaultProxy, double: AzureDouble
    ) -> None:
        token = list(double.login.tokens)[-1]
        value = "MDEyMzQ1Njc4OWFiY2RlZg"  # DEK
        for secret in (token, value):
            proxy.mode = (
                "status",
                400,
                {},
                f'{{"error": {{"code": "BadParameter", "message": "wrong: {secret}"}}}}',
            )
            with pytest.raises(ConfigurationError, match="BadParameter") as raised:
                client.wrap(DEK, "sales")
            problem(raised)
            assert secret not in str(raised.value)
            assert secret not in str(raised.value.__cause__)

    @pytest.mark.parametrize(
        "link", ["https://evil.example.com/keys/sales/versions?x=1", "http://{}/x?x=1", "?", "::"]
    )
    def test_next_page_elsewhere(
        self, client: Client, proxy: FaultProxy, azure: AzureWorld, link: str
    ) -> None:
        """The token goes to no other server."""
        host = azure.url().removeprefix("https://")
        page = f'{{"value": [], "nextLink": "{link.format(host)}"}}'
        proxy.forget()
        # the version that is remembered, the current one, the list
        proxy.next = ["pass", "pass", ("status", 200, {}, page)]
        with pytest.raises(ConfigurationError, match="not an answer of Key Vault") as raised:
            client.unwrap(b"x" * 256, "sales")
        problem(raised)
        assert len(proxy.requests) == 3


class TestToken:
    def test_one_login_for_many_calls(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble
    ) -> None:
        client = jvm.client(properties)
        for _ in range(3):
            client.wrap(DEK, "sales")
        assert double.login.granted == 1

    def test_expired_or_revoked(self, client: Client, double: AzureDouble) -> None:
        """The vault does not accept the token any more: a new one is fetched, once."""
        before = double.login.granted
        double.login.revoke()
        blob = client.wrap(DEK, "sales")
        assert double.login.granted == before + 1
        assert client.metrics()["errors"] == 0
        assert client.unwrap(blob, "sales") == DEK

    def test_soon_to_expire(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble
    ) -> None:
        """A token that does not outlive one call is not used again; the next one is."""
        double.login.lifetime = 20
        client = jvm.client(properties)
        client.wrap(DEK, "sales")
        double.login.lifetime = 3600
        before = double.login.granted
        client.wrap(DEK, "sales")
        assert double.login.granted == before + 1
        client.wrap(DEK, "sales")
        assert double.login.granted == before + 1

    def test_that_ends_within_minutes(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble
    ) -> None:
        """It would be renewed, but no more often than every 30 s."""
        double.login.lifetime = 200
        client = jvm.client(properties)
        client.wrap(DEK, "sales")
        before = double.login.granted
        for _ in range(3):
            client.wrap(DEK, "sales")
        assert double.login.granted == before

    @pytest.mark.parametrize(("clock", "words"), [(600, "not yet valid"), (-7200, "expired")])
    def test_clock_skew(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble, clock: int, words: str
    ) -> None:
        double.login.clock = clock
        with pytest.raises(LoginFailedError, match="does not accept the login") as raised:
            jvm.client(properties).wrap(DEK, "sales")
        problem(raised, words, "clock")

    def test_a_good_one_is_used_while_the_login_is_out_of_order(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble, proxy: FaultProxy
    ) -> None:
        """It ends within five minutes, so each call would renew it; a login is not asked each time, busy or not."""
        double.login.lifetime = 200
        client = jvm.client(properties)
        client.wrap(DEK, "sales")
        for refusal in ("AADSTS90033", "AADSTS7000222"):  # busy; a secret that has expired
            double.login.refusal = (refusal, "A transient error has occurred.")
            proxy.forget()
            for _ in range(3):
                assert client.wrap(DEK, "sales")
            assert not [path for path in proxy.requests if "oauth2" in path]
        assert client.metrics()["errors"] == 0
        double.login.revoke()
        with pytest.raises(LoginFailedError, match="AADSTS7000222"):
            client.wrap(DEK, "sales")

    def test_a_line_break_after_it(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble, proxy: FaultProxy
    ) -> None:
        """An HTTP client would quote the whole token in its error."""
        double.login.after = "\n"
        client = jvm.client(properties)
        with pytest.raises(ConfigurationError, match="Authorization has a char") as raised:
            client.wrap(DEK, "sales")
        problem(raised, "is a line break")
        assert "only-for-tests" not in str(raised.value.__cause__)
        assert not [path for path in proxy.requests if "wrapkey" in path]
        double.login.after = ""
        assert client.wrap(DEK, "sales"), "the bad one is not kept"

    def test_for_another_service(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble
    ) -> None:
        scope = {f"{PREFIX}token-scope": "https://storage.azure.com/.default"}
        with pytest.raises(LoginFailedError, match="Invalid audience") as raised:
            jvm.client(properties | scope).wrap(DEK, "sales")
        problem(raised)


class TestLogin:
    """The login service fails, before any token. Codes and words: Microsoft's "AADSTS error codes"."""

    @pytest.mark.parametrize(
        ("refusal", "hint"),
        [
            (("AADSTS7000215", "Invalid client secret provided."), "AZURE_CLIENT_ID"),
            (
                ("AADSTS7000222", "The provided client secret keys for app '1' are expired."),
                "new one",
            ),
            (
                ("AADSTS700024", "Client assertion is not within its valid time range."),
                "clock",
            ),
            (("AADSTS700016", "Application was not found in the directory."), "tenant"),
        ],
    )
    def test_refused(
        self,
        jvm: Jvm,
        properties: dict[str, str],
        double: AzureDouble,
        proxy: FaultProxy,
        refusal: tuple[str, str],
        hint: str,
    ) -> None:
        double.login.refusal = refusal
        with pytest.raises(LoginFailedError, match="login refused") as raised:
            jvm.client(properties).wrap(DEK, "sales")
        problem(raised, refusal[0])
        assert hint in raised.value.hint
        assert sum("oauth2" in request for request in proxy.requests) == 1, "not tried again"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_unavailable(
        self, jvm: Jvm, properties: dict[str, str], proxy: FaultProxy, fault: str
    ) -> None:
        warm(jvm, properties)
        proxy.forget()
        proxy.mode = FAULTS[fault][0]
        limit = {"encryption.kms.retry.timeout-ms": "1000"} if fault == "throttled" else {}
        client = jvm.client(properties | limit)
        with pytest.raises(KmsUnavailableError, match="login service") as raised:
            client.wrap(DEK, "sales")
        problem(raised)
        retries = client.metrics()["retries"]
        assert retries > 4 if fault == "throttled" else retries == 2
        sent = 0 if fault == "down" else retries + 1  # by our attempts, and no more often
        cut_short = fault == "throttled" and len(proxy.requests) == retries
        assert proxy.requests == ["POST /adfs/oauth2/token"] * (sent - cut_short)
        proxy.mode = "pass"
        assert client.wrap(DEK, "sales")

    def test_hang(self, jvm: Jvm, properties: dict[str, str], proxy: FaultProxy) -> None:
        limits = {"encryption.kms.call-timeout-ms": "700", "encryption.kms.retry.max-attempts": "2"}
        warm(jvm, properties)
        proxy.mode = "hang"
        start = time.monotonic()
        with pytest.raises(KmsUnavailableError) as raised:
            jvm.client(properties | limits).wrap(DEK, "sales")
        problem(raised)
        assert time.monotonic() - start < 15

    @pytest.mark.nightly
    def test_a_hang_does_not_stop_callers_with_a_token(
        self, jvm: Jvm, properties: dict[str, str], double: AzureDouble, proxy: FaultProxy
    ) -> None:
        """In the last minutes of a token another one is asked for every 30 seconds."""
        double.login.lifetime = 120
        limit = {"encryption.kms.call-timeout-ms": "20000"}
        client = jvm.client(properties | limit, raw=True)
        client.wrap(DEK, "sales")
        time.sleep(31)
        proxy.rule = lambda asked, body: "hang" if "oauth2" in asked else "pass"
        try:
            with ThreadPoolExecutor(4) as threads:
                calls = [threads.submit(client.wrap, DEK, "sales") for _ in range(4)]
                waiting = wait(calls, timeout=10).not_done
                proxy.rule = None
                proxy.mode = "down"  # ends what hangs
                assert len(waiting) == 1, "the one that logs in"
                proxy.mode = "pass"
        finally:
            proxy.rule = None


@pytest.mark.nightly
class TestOtherCredentials:
    """Each in a JVM of its own, for the environment says which."""

    def test_managed_identity(
        self, start: Callable[..., Jvm], properties: dict[str, str], azure: AzureWorld
    ) -> None:
        client = start(azure.as_managed_identity(), azure.java_options).client(properties)
        blob = client.wrap(DEK, "sales")
        assert client.unwrap(blob, "sales") == DEK
        assert IDENTITY_HEADER.encode() not in client.serialized()

    def test_managed_identity_whose_header_cannot_be_one(
        self, start: Callable[..., Jvm], properties: dict[str, str], azure: AzureWorld
    ) -> None:
        bad = azure.as_managed_identity() | {"IDENTITY_HEADER": IDENTITY_HEADER + "\n"}
        jvm = start(bad, azure.java_options)
        with pytest.raises(LoginFailedError) as raised:
            jvm.client(properties).wrap(DEK, "sales")
        problem(raised, "header")
        assert IDENTITY_HEADER not in str(raised.value.__cause__)
        assert IDENTITY_HEADER not in jvm.log.read_text()

    def test_machine(
        self, start: Callable[..., Jvm], properties: dict[str, str], azure: AzureWorld
    ) -> None:
        """A managed identity by the Instance Metadata Service."""
        client = start(azure.as_machine(), azure.java_options).client(properties)
        assert client.unwrap(client.wrap(DEK, "sales"), "sales") == DEK
        assert [r for r in azure.double.requests if r.startswith("GET /metadata/identity")]

    def test_workload_identity(
        self,
        start: Callable[..., Jvm],
        properties: dict[str, str],
        azure: AzureWorld,
        tmp_path: Path,
    ) -> None:
        """Kubernetes replaces the token that it projects into the pod."""
        data = tmp_path / "data"
        data.write_text("federated-1")
        data.chmod(0o644)
        token = tmp_path / "azure-identity-token"
        token.symlink_to(data)
        login = azure.double.login
        login.federated = "federated-1"
        client = start(azure.as_workload(token), azure.java_options).client(properties)
        client.wrap(DEK, "sales")
        login.federated = "federated-2"
        data.write_text("federated-2")
        assert client.wrap(DEK, "sales"), "the old login is still good"
        login.revoke()
        assert client.wrap(DEK, "sales"), "the file is read again"
        data.chmod(0o666)
        with pytest.raises(ConfigurationError, match="may be changed by others") as raised:
            client.wrap(DEK, "sales")
        assert "AZURE_FEDERATED_TOKEN_FILE" in raised.value.message
        assert "chmod go-w" in raised.value.hint

    def test_certificate(
        self,
        start: Callable[..., Jvm],
        properties: dict[str, str],
        azure: AzureWorld,
        tmp_path: Path,
    ) -> None:
        file = tmp_path / "application.pem"
        login = azure.double.login
        login.certificate = self_signed(file)
        client = start(azure.with_certificate(file), azure.java_options).client(properties)
        blob = client.wrap(DEK, "sales")
        # Loading Azure's classes, before that, can take longer than a call may.
        errors = client.metrics()["errors"]
        assert client.wrap(DEK, "sales")
        before = login.granted
        login.certificate = self_signed(file)
        assert client.wrap(DEK, "sales"), "a replaced one is read"
        assert login.granted == before + 1
        assert client.unwrap(blob, "sales") == DEK

        file.write_text("-----BEGIN")
        assert client.wrap(DEK, "sales"), "half written: the old token is good"
        file.unlink()
        assert client.wrap(DEK, "sales"), "gone for a moment"
        login.after = "\n"
        login.certificate = self_signed(file)
        assert client.wrap(DEK, "sales"), "an answer that is not a token does not replace one"
        login.after = ""
        before = login.granted
        login.certificate = self_signed(file)
        assert client.wrap(DEK, "sales")
        assert login.granted == before + 1
        assert client.metrics()["errors"] == errors

    def test_none(
        self, start: Callable[..., Jvm], properties: dict[str, str], azure: AzureWorld
    ) -> None:
        jvm = start({"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"}, azure.java_options)
        with pytest.raises(LoginFailedError, match="no Azure credential was found") as raised:
            jvm.client(properties).wrap(DEK, "sales")
        problem(raised, "AZURE_CLIENT_ID")

        # A class of the user's own, as Iceberg loads it.
        other = {"adls.token-credential-provider": "org.example.Absent"}
        with pytest.raises(ConfigurationError, match=re.escape("org.example.Absent")) as raised2:
            jvm.client(properties | other).wrap(DEK, "sales")
        assert "AdlsTokenCredentialProvider" in raised2.value.hint
        own = "org.apache.iceberg.azure.AdlsTokenCredentialProviders$DefaultTokenCredentialProvider"
        with pytest.raises(LoginFailedError, match="no Azure credential was found"):
            jvm.client(properties | {"adls.token-credential-provider": own}).wrap(DEK, "sales")


def warm(jvm: Jvm, properties: dict[str, str]) -> None:
    """Loads Azure's classes, so that what follows is not about that: seconds on a busy machine."""
    jvm.client(properties).wrap(DEK, "sales")
