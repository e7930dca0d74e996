"""What the Vault client makes of networks and servers that fail, of TLS, and of wrong properties."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.faults import FaultProxy, Mode
from harness.files import secret_file
from harness.jvm import Client, Jvm
from harness.refused import explained
from harness.tls import TestAuthority, make_authority
from servers.vault import VaultServer, start_vault
from servers.vault_world import VaultWorld

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    KmsUnavailableError,
    LoginFailedError,
)

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.vault."
QUICK = {
    "encryption.kms.retry.initial-delay-ms": "10",
    "encryption.kms.retry.max-delay-ms": "20",
    "encryption.kms.circuit-breaker.failures": "0",
}


@pytest.fixture
def login(vault: VaultServer, proxy: FaultProxy, key: str, tmp_path: Path) -> dict[str, str]:
    """Properties of a client that may use the key, through the proxy."""
    policy = vault.driver_policy(key)
    return vault.token_login(tmp_path / "token", policy, address=proxy.url) | QUICK


@pytest.fixture
def client(jvm: Jvm, login: dict[str, str]) -> Client:
    """Without retries."""
    return jvm.client(login, raw=True)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VaultServer]:
    """A Vault for those who seal it; it starts as a new one does."""
    server = start_vault(tmp_path_factory.mktemp("own-vault") / "log", ready=False)
    yield server
    server.stop()


def problem(raised: pytest.ExceptionInfo[IcebergCryptoError], key: str, *words: str) -> None:
    """The error names the KMS and the key, says these words, and has a hint and no secret."""
    explained(raised.value, ["Vault at http", f"'{key}'", *words], ["hvs."])


def vaults(words: str) -> bytes:
    return b'{"errors":["%s"]}' % words.encode()


UNAVAILABLE: dict[str, tuple[Mode, str]] = {
    "down": ("down", "cannot be reached"),
    "reset": ("reset", "cannot be reached"),
    "too many requests": (("status", 429, {"Retry-After": "1"}, vaults("slow down")), "too many"),
    "broken": (("status", 500, {}, vaults("1 error occurred")), "failed (HTTP 500: 1 error"),
    "uninitialised": (("status", 501, {}, b""), "is not initialised"),
    "gateway": (("status", 502, {}, "<html>bad gateway</html>"), "failed (HTTP 502)"),
    "sealed": (("status", 503, {}, vaults("Vault is sealed")), "is sealed"),
    "standby": (
        ("status", 503, {}, vaults("no active Vault instance found")),
        "has no active server (HTTP 503: no active Vault instance found)",
    ),
    "gateway timeout": (("status", 504, {}, ""), "failed (HTTP 504)"),
    "behind": (("status", 412, {}, vaults("required index state not present")), "standby"),
    "performance standby": (("status", 473, {}, vaults("")), "standby"),
}


@pytest.mark.parametrize("used", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("fault", UNAVAILABLE)
def test_unavailable(client: Client, proxy: FaultProxy, key: str, fault: str, used: bool) -> None:
    mode, words = UNAVAILABLE[fault]
    blob = client.wrap(DEK, key) if used else b""
    proxy.mode = mode
    with pytest.raises(KmsUnavailableError) as raised:
        client.wrap(DEK, key)
    problem(raised, key, words)
    if used:
        with pytest.raises(KmsUnavailableError) as raised:
            client.unwrap(blob, key)
        problem(raised, key, words)
    proxy.mode = "pass"
    assert client.unwrap(client.wrap(DEK, key), key) == DEK


@pytest.mark.parametrize(
    "mode",
    [
        ("status", 200, {"Content-Type": "text/html"}, "<html>welcome</html>"),
        ("status", 204, {}, ""),
        ("status", 302, {"Location": "https://login.example.com/"}, ""),
        ("status", 400, {}, "Client sent an HTTP request to an HTTPS server."),
        ("status", 401, {}, "<html>who are you?</html>"),
        ("status", 403, {}, "<html>forbidden by the proxy</html>"),
        ("status", 407, {}, ""),
        ("status", 307, {}, ""),
    ],
    ids=lambda mode: str(mode[1]),
)
def test_answers_that_are_not_vaults(at: VaultWorld, client: Client, mode: Mode) -> None:
    blob = client.wrap(DEK, at.key)
    at.proxy.mode = mode
    for attempt in (lambda: client.wrap(DEK, at.key), lambda: client.unwrap(blob, at.key)):
        with pytest.raises(ConfigurationError) as raised:
            attempt()
        problem(raised, at.key)
        assert "html" not in str(raised.value)


def test_no_key_is_sent_to_what_is_not_vault(client: Client, proxy: FaultProxy, key: str) -> None:
    for mode in (("status", 400, {}, "what?"), ("status", 200, {}, "{}"), ("status", 404, {}, "")):
        proxy.mode = mode
        with pytest.raises(ConfigurationError):
            client.wrap(DEK, key)
    assert not any(b"plaintext" in body for body in proxy.bodies)


def test_refusals_are_not_retried(at: VaultWorld, login: dict[str, str]) -> None:
    client = at.jvm.client(login)
    client.wrap(DEK, at.key)
    at.vault.revoke(at.proxy.headers[-1]["x-vault-token"])
    at.proxy.forget()
    with pytest.raises(LoginFailedError):
        client.wrap(DEK, at.key)
    assert at.proxy.requests == [f"POST /v1/transit/encrypt/{at.key}"]
    assert client.metrics()["retries"] == 0


def test_vaults_own_rate_limit(at: VaultWorld, login: dict[str, str], client: Client) -> None:
    blob = client.wrap(DEK, at.key)
    limit = {"path": f"transit/decrypt/{at.key}", "rate": 1, "interval": "1s"}
    at.vault.call("POST", "sys/quotas/rate-limit/tests", limit)
    try:
        with pytest.raises(KmsUnavailableError) as raised:
            for _ in range(3):
                client.unwrap(blob, at.key)
        problem(raised, at.key, "has too many requests", "rate limit quota exceeded")
        patient = {
            "encryption.kms.retry.initial-delay-ms": "400",
            "encryption.kms.cache.ttl-ms": "0",
        }
        assert at.jvm.client({**login, **patient}).unwrap(blob, at.key) == DEK
    finally:
        at.vault.call("DELETE", "sys/quotas/rate-limit/tests")


def test_a_standby_that_lags_behind_a_rotation(at: VaultWorld, login: dict[str, str]) -> None:
    """Such a wrapped key is read later, and is no proof that Vault binds it to its key id."""
    lags: list[Mode] = [
        "pass",
        ("status", 400, {}, vaults("invalid ciphertext: version is too new")),
    ]
    at.proxy.rule = lambda asked, _: lags.pop(0) if lags and "/decrypt/" in asked else "pass"
    client = at.jvm.client({**login, "encryption.kms.cache.ttl-ms": "0"})
    blob = client.wrap(DEK, at.key)
    assert client.metrics()["retries"] == 1
    lags += [("status", 400, {}, vaults("invalid ciphertext: version is too new"))]
    assert client.unwrap(blob, at.key) == DEK
    assert client.metrics()["retries"] == 2


def test_uninitialised_and_sealed_vault(jvm: Jvm, own: VaultServer, tmp_path: Path) -> None:
    token = secret_file(tmp_path / "token", "hvs.not-yet")
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": own.address,
        f"{PREFIX}token-file": str(token),
    }
    client = jvm.client(properties, raw=True)
    with pytest.raises(KmsUnavailableError) as raised:
        client.wrap(DEK, "k")
    problem(raised, "k", "is sealed", "initialise it if it is new")
    own.initialize()
    own.unseal()
    own.enable()
    own.make_key("k")
    token.write_text(own.root)
    blob = client.wrap(DEK, "k")
    own.seal()
    for attempt in (lambda: client.wrap(DEK, "k"), lambda: client.unwrap(blob, "k")):
        with pytest.raises(KmsUnavailableError) as raised:
            attempt()
        problem(raised, "k", "is sealed")
    own.unseal()
    assert client.unwrap(blob, "k") == DEK


def test_standby_that_sends_on(at: VaultWorld, login: dict[str, str]) -> None:
    client = at.jvm.client(login, raw=True)
    blob = client.wrap(DEK, at.key)
    location = f"{at.vault.address}/v1/transit/decrypt/{at.key}"
    at.proxy.mode = ("status", 307, {"Location": location}, "")
    assert client.unwrap(blob, at.key) == DEK
    at.proxy.mode = ("status", 307, {"Location": f"{at.proxy.url}/v1/transit/decrypt/{at.key}"}, "")
    with pytest.raises(ConfigurationError):  # to itself
        client.unwrap(blob, at.key)


def test_token_is_not_sent_on_to_another_page(at: VaultWorld, client: Client) -> None:
    """A standby names the same request; a sign-on or another redirect does not."""
    blob = client.wrap(DEK, at.key)
    other = at.faults(at.vault.port)
    for path in ("/login", f"/v1/transit/decrypt/{at.key}/more", "/v1/sys/health", "//v1"):
        at.proxy.mode = ("status", 307, {"Location": f"{other.url}{path}"}, "")
        with pytest.raises(ConfigurationError) as raised:
            client.unwrap(blob, at.key)
        problem(raised, at.key, "does not answer as Vault does")
    assert other.requests == []


def test_token_is_not_sent_on_from_https_to_http(
    at: VaultWorld, login: dict[str, str], authority: TestAuthority
) -> None:
    secure, plain = at.faults(at.vault.port, authority.server), at.faults(at.vault.port)
    properties = {
        **login,
        f"{PREFIX}address": secure.url,
        f"{PREFIX}ca-file": str(authority.ca_file),
    }
    client = at.jvm.client(properties, raw=True)
    blob = client.wrap(DEK, at.key)
    secure.mode = ("status", 307, {"Location": f"{plain.url}/v1/transit/decrypt/{at.key}"}, "")
    with pytest.raises(ConfigurationError) as raised:
        client.unwrap(blob, at.key)
    problem(raised, at.key, "does not answer as Vault does")
    assert plain.requests == []


def test_token_is_not_sent_on_to_another_host_by_http(
    at: VaultWorld, login: dict[str, str]
) -> None:
    """Not with the very first request, which looks at the token, either."""
    client = at.jvm.client(login, raw=True)
    blob = client.wrap(DEK, at.key)
    at.proxy.mode = (
        "status",
        307,
        {"Location": f"http://192.0.2.2:8200/v1/transit/decrypt/{at.key}"},
        "",
    )
    for asked in (client, at.jvm.client(login, raw=True)):
        with pytest.raises(ConfigurationError) as raised:
            asked.unwrap(blob, at.key)
        problem(raised, at.key, "redirects to 192.0.2.2 over http", "allow-http")


def test_http_to_another_host_when_that_is_allowed(at: VaultWorld, login: dict[str, str]) -> None:
    """The other host is this one, by a name that Java takes from a hosts file."""
    allowed = at.jvm.client({**login, f"{PREFIX}allow-http": "true"}, raw=True)
    strict = at.jvm.client(login, raw=True)
    blob = allowed.wrap(DEK, at.key)
    location = f"http://active.vault.test:{at.vault.port}/v1/transit/decrypt/{at.key}"
    at.proxy.mode = ("status", 307, {"Location": location}, "")
    assert allowed.unwrap(blob, at.key) == DEK
    with pytest.raises(ConfigurationError, match=r"redirects to active\.vault\.test over http"):
        strict.unwrap(blob, at.key)


def test_private_authority(at: VaultWorld, private: VaultServer, authority: TestAuthority) -> None:
    key = private.make_key()
    properties = private.token_login(at.folder / "token", private.driver_policy(key))
    trusting = {**properties, f"{PREFIX}ca-file": str(authority.ca_file)}
    client = at.jvm.client(trusting, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK
    assert client.travelled().unwrap(client.wrap(DEK, key), key) == DEK

    other = make_authority(at.folder)
    for untrusting in (properties, {**properties, f"{PREFIX}ca-file": str(other.ca_file)}):
        with pytest.raises(ConfigurationError) as raised:
            at.jvm.client(untrusting, raw=True).wrap(DEK, key)
        problem(raised, key, "certificate is not trusted", "ca-file")

    by_name = {**trusting, f"{PREFIX}address": private.address.replace("127.0.0.1", "localhost")}
    with pytest.raises(ConfigurationError) as raised:
        at.jvm.client(by_name, raw=True).wrap(DEK, key)
    problem(raised, key, "certificate is not trusted")

    ca_file = at.folder / "replaced.pem"
    ca_file.write_bytes(other.ca_file.read_bytes())
    client = at.jvm.client({**properties, f"{PREFIX}ca-file": str(ca_file)}, raw=True)
    with pytest.raises(ConfigurationError, match="certificate is not trusted"):
        client.wrap(DEK, key)
    ca_file.write_bytes(authority.ca_file.read_bytes())
    assert client.wrap(DEK, key), "a replaced one is read"
    ca_file.write_text("-----BEGIN")
    assert client.wrap(DEK, key), "half written: the one before stays"
    ca_file.unlink()
    assert client.wrap(DEK, key)

    for file in (at.folder / "missing.pem", at.folder / "token"):
        with pytest.raises(ConfigurationError, match=file.name):
            at.jvm.client({**properties, f"{PREFIX}ca-file": str(file)}, raw=True).wrap(DEK, key)


def test_http_where_vault_speaks_tls(
    at: VaultWorld, private: VaultServer, login: dict[str, str]
) -> None:
    address = private.address.replace("https", "http")
    client = at.jvm.client({**login, f"{PREFIX}address": address}, raw=True)
    with pytest.raises(ConfigurationError) as raised:
        client.wrap(DEK, at.key)
    problem(raised, at.key, "does not answer as Vault does", "http where https should be")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"address": None}, "address is missing"),
        ({"address": " "}, "address is empty"),
        ({"address": "vault:8200"}, "does not start with https://"),
        ({"address": "ftp://vault:8200"}, "does not start with https://"),
        ({"address": "https://"}, "is not a URL"),
        ({"address": "https:///v1"}, "names no host"),
        ({"address": "https://a b"}, "is not a URL"),
        ({"address": "https://me:secret@vault:8200"}, "more than a host"),
        ({"address": "https://vault:8200/?x=secret"}, "more than a host"),
        ({"address": "http://vault.example.com:8200"}, "in plaintext"),
        ({"allow-http": "perhaps", "address": "http://vault"}, "neither true nor false"),
        ({"token": "hvs.secret"}, "would show a secret"),
        ({"secret-id": "secret"}, "would show a secret"),
        ({"token-file": None}, "nothing to log in with"),
        ({"token-env": "T"}, "are both set"),
        ({"role-id": "r", "secret-id-file": "f"}, "a token and a login: AppRole"),
        ({"kubernetes-role": "r"}, "a token and a login: Kubernetes"),
        (
            {"token-file": None, "kubernetes-role": "r", "jwt-role": "r", "jwt-file": "f"},
            "two logins: by Kubernetes and by JWT",
        ),
        (
            {"token-file": None, "role-id": "r", "secret-id-file": "f", "cert-file": "f"},
            "cert-key-file is missing",
        ),
        ({"token-file": None, "kubernetes-token-file": "f"}, "kubernetes-role is missing"),
        (
            {"token-file": None, "kubernetes-role": "r", "kubernetes-mount": "../x"},
            "kubernetes-mount is not a path",
        ),
        ({"jwt-mount": "team"}, "jwt-mount is set, but the login is not by JWT"),
        ({"token-file": None, "jwt-role": "r"}, "jwt-env nor"),
        ({"token-file": None, "jwt-file": "f"}, "jwt-role is missing"),
        ({"token-file": None, "jwt-role": "r", "jwt-file": "f", "jwt-env": "E"}, "are both set"),
        ({"token-file": None, "cert-key-file": "f"}, "cert-file is missing"),
        (
            {
                "address": "http://127.0.0.1:8200",
                "token-file": None,
                "cert-file": "f",
                "cert-key-file": "f",
            },
            "the login is by TLS certificate",
        ),
        ({"jwt": "secret"}, "would show a secret"),
        ({"cert-key": "secret"}, "would show a secret"),
        ({"token-file": None, "role-id": "r"}, "Neither"),
        ({"token-file": None, "secret-id-file": "f"}, "role-id is missing"),
        (
            {"token-file": None, "role-id": "r", "secret-id-file": "f", "secret-id-env": "E"},
            "are both set",
        ),
        ({"token-file": ""}, "token-file is empty"),
        ({"transit-mount": "../sys"}, "transit-mount is not a path"),
        ({"transit-mount": "a//b"}, "transit-mount is not a path"),
        ({"transit-mount": "a?b"}, "transit-mount is not a path"),
        ({"namespace": "a b"}, "namespace is not a path"),
        (
            {"token-file": None, "role-id": "r", "secret-id-file": "f", "approle-mount": "../x"},
            "approle-mount is not a path",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else ",".join(value),
)
def test_wrong_properties(jvm: Jvm, changed: dict[str, str | None], words: str) -> None:
    given = {"address": "https://vault.example.com:8200", "token-file": "/no/token", **changed}
    properties = {f"{PREFIX}{name}": value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigurationError) as raised:
        jvm.client({"encryption.kms-type": "vault", **properties})
    assert words in str(raised.value)
    assert PREFIX in str(raised.value)
    assert raised.value.hint
    assert "secret@" not in str(raised.value)
    assert "hvs.secret" not in str(raised.value)
