"""How the Vault client logs in: tokens that rotate, are renewed and expire, AppRole, and where secrets never are."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from doubles.faults import FaultProxy, Mode
from harness.jvm import Jvm
from harness.programs import wait_for
from harness.refused import explained
from servers.vault import VaultServer, write_secret

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    LoginFailedError,
)

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.vault."
LOGIN = "POST /v1/auth/approle/login"
RENEWAL = "POST /v1/auth/token/renew-self"


def refused(
    raised: pytest.ExceptionInfo[IcebergCryptoError], key: str, secret: str, *words: str
) -> None:
    """The error names the KMS and the key, says these words and that the login is why; it shows no secret."""
    always = ("Vault at http://127.0.0.1:", f"'{key}'", "login refused")
    explained(raised.value, [*always, *words], [secret])


def test_token_in_a_variable(jvm: Jvm, vault: VaultServer, policy: str, key: str) -> None:
    token = vault.make_token(policy, id=jvm.environment["ICEBERG_CRYPTO_TEST_TOKEN"])
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": vault.address,
        f"{PREFIX}token-env": "ICEBERG_CRYPTO_TEST_TOKEN",
    }
    client = jvm.client(properties, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK
    vault.revoke(token)
    with pytest.raises(LoginFailedError) as raised:
        client.wrap(DEK, key)
    refused(raised, key, token, "environment variable ICEBERG_CRYPTO_TEST_TOKEN", "was revoked")


def test_wrong_token(jvm: Jvm, vault: VaultServer, key: str) -> None:
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": vault.address,
        f"{PREFIX}token-env": "ICEBERG_CRYPTO_TEST_WRONG",
    }
    with pytest.raises(LoginFailedError) as raised:
        jvm.client(properties, raw=True).wrap(DEK, key)
    wrong = jvm.environment["ICEBERG_CRYPTO_TEST_WRONG"]
    refused(raised, key, wrong, "ICEBERG_CRYPTO_TEST_WRONG", "is not of this Vault")


def test_token_file_that_rotates(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path
) -> None:
    client = jvm.client(vault.token_login(secret, policy), raw=True)
    blob = client.wrap(DEK, key)
    old = secret.read_text().strip()
    vault.revoke(old)
    with pytest.raises(LoginFailedError) as raised:
        client.unwrap(blob, key)
    refused(raised, key, old, f"file {secret}", "read again")
    write_secret(secret, vault.make_token(policy))
    assert client.unwrap(blob, key) == DEK


def test_token_file_that_is_written_in_place(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path
) -> None:
    """For a moment it is empty, gone, or has half of the new token: the old one is used as long as it is good."""
    client = jvm.client(vault.token_login(secret, policy), raw=True)
    blob = client.wrap(DEK, key)
    old = secret.read_text().strip()
    new = vault.make_token(policy)
    for moment in ("", None, new[: len(new) // 2]):
        if moment is None:
            secret.unlink()
        else:
            write_secret(secret, moment)
        assert client.unwrap(blob, key) == DEK
    write_secret(secret, new)
    assert client.unwrap(blob, key) == DEK
    vault.revoke(old)
    assert client.unwrap(blob, key) == DEK, "with the new one"
    write_secret(secret, old)
    vault.revoke(new)
    with pytest.raises(LoginFailedError):  # neither is good
        client.unwrap(blob, key)


def test_token_file_that_changes_during_the_call(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    """Refused with the old token, and done with the new one."""
    client = jvm.client(vault.token_login(secret, policy, address=proxy.url), raw=True)
    blob = client.wrap(DEK, key)
    new = vault.make_token(policy)
    vault.revoke(secret.read_text().strip())
    proxy.forget()
    proxy.next = ["slow"]
    with ThreadPoolExecutor() as pool:
        unwrapped = pool.submit(client.unwrap, blob, key)
        wait_for(lambda: bool(proxy.requests))
        write_secret(secret, new)
        assert unwrapped.result() == DEK
    unwrap = f"POST /v1/transit/decrypt/{key}"
    assert proxy.requests == [unwrap, "GET /v1/auth/token/lookup-self", unwrap]


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, ConfigurationError, "does not exist"),
        ("", ConfigurationError, "is empty"),
        ("hvs.one\nhvs.two", ConfigurationError, "more than one line"),
        ("hvs.\u00e4\u00e4", ConfigurationError, "has characters that no secret"),
        ("hvs.a\x01b", ConfigurationError, "has characters that no secret"),
        ("hvs.a\x7f", ConfigurationError, "has characters that no secret"),
        ("hvs.a b", ConfigurationError, "has characters that no secret"),
        ("hvs.a\r\nX-Vault-Namespace: b", ConfigurationError, "more than one line"),
    ],
)
def test_token_files_that_hold_none(
    jvm: Jvm,
    vault: VaultServer,
    policy: str,
    key: str,
    secret: Path,
    content: str | None,
    error: type[IcebergCryptoError],
    words: str,
) -> None:
    client = jvm.client(vault.token_login(secret, policy), raw=True)
    if content is None:
        secret.unlink()
    else:
        write_secret(secret, content)
    with pytest.raises(error) as raised:
        client.wrap(DEK, key)
    text = str(raised.value)
    assert words in text
    assert f"'{key}'" in text
    assert str(secret) in text
    assert "hvs." not in text


def test_token_file_open_to_others(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path
) -> None:
    """0640 is what Vault Agent makes."""
    client = jvm.client(vault.token_login(secret, policy), raw=True)
    for mode in (0o644, 0o640):
        secret.chmod(mode)
        with pytest.raises(ConfigurationError) as raised:
            client.wrap(DEK, key)
        words = [str(secret), f"'{key}'", f"chmod 600 {secret}", "Vault Agent", "mode = 0600"]
        explained(raised.value, words, [secret.read_text().strip()])


def test_expired_token(jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path) -> None:
    client = jvm.client(vault.token_login(secret, policy, ttl="1s", renewable=False), raw=True)
    blob = client.wrap(DEK, key)
    time.sleep(1.5)
    for attempt in (lambda: client.wrap(DEK, key), lambda: client.unwrap(blob, key)):
        with pytest.raises(LoginFailedError) as raised:
            attempt()
        refused(raised, key, secret.read_text().strip(), f"file {secret}", "expired")


PAGE = "<html>down for maintenance</html>"
NO_RENEWAL: dict[str, Mode] = {
    "gateway": ("status", 502, {}, PAGE),
    "page": ("status", 200, {"Content-Type": "text/html"}, PAGE),
    "empty": ("status", 204, {}, ""),
    "sign-on": ("status", 302, {"Location": "https://login.example.com/"}, ""),
    "page of a proxy": ("status", 403, {}, PAGE),
}


def test_renewable_token_outlives_its_time(
    jvm: Jvm,
    vault: VaultServer,
    policy: str,
    key: str,
    tmp_path: Path,
    faults: Callable[..., FaultProxy],
) -> None:
    """Renewed while nobody uses it, and again when something else answers the first renewal."""
    proxies = {fault: faults(vault.port) for fault in NO_RENEWAL}
    used = []
    for fault, proxy in proxies.items():
        login = vault.token_login(
            tmp_path / fault, policy, address=proxy.url, ttl="9s", period="9s"
        )
        client = jvm.client(login, raw=True)
        used.append((client, client.wrap(DEK, key)))
        proxy.mode = NO_RENEWAL[fault]
    ends = time.monotonic() + 9

    def each_is_asked(times: int) -> None:
        for proxy in proxies.values():
            wait_for(lambda seen=proxy.requests: seen.count(RENEWAL) >= times)  # type: ignore[misc]
            proxy.mode = "pass"

    each_is_asked(1)
    each_is_asked(2)
    time.sleep(max(0, ends + 0.5 - time.monotonic()))
    for client, blob in used:
        assert client.unwrap(blob, key) == DEK
        client.close()


def test_token_that_a_maintenance_page_kept_from_a_look_is_renewed_later(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    login = vault.token_login(secret, policy, address=proxy.url, ttl="6s", period="6s")
    client = jvm.client(login, raw=True)
    proxy.only, proxy.mode = "lookup-self", ("status", 200, {}, PAGE)
    blob = client.wrap(DEK, key)
    proxy.mode = "pass"
    client.unwrap(blob, key)
    wait_for(lambda: RENEWAL in proxy.requests, 6)
    client.close()


def test_client_that_is_closed_or_that_nobody_holds_renews_no_more(
    jvm: Jvm,
    vault: VaultServer,
    policy: str,
    key: str,
    tmp_path: Path,
    faults: Callable[..., FaultProxy],
) -> None:
    """Spark closes no catalog, so the garbage collector ends the renewals."""
    proxies = [faults(vault.port), faults(vault.port)]
    clients = []
    for proxy, file in zip(proxies, ("closed", "not held"), strict=True):
        login = vault.token_login(tmp_path / file, policy, address=proxy.url, ttl="2s", period="2s")
        clients.append(jvm.client(login, raw=True))
        clients[-1].wrap(DEK, key)
    closed, not_held = clients
    closed.close()
    weakly = jvm.view.java.lang.ref.WeakReference(not_held.java)
    jvm.gateway.detach(not_held.java)
    jvm.view.System.gc()
    assert weakly.get() is None
    for proxy in proxies:
        proxy.forget()
    time.sleep(2.5)
    assert [proxy.requests for proxy in proxies] == [[], []]
    with pytest.raises(LoginFailedError):
        closed.wrap(DEK, key)


def test_closed_client_starts_again(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path
) -> None:
    client = jvm.client(vault.approle_login(secret, policy), raw=True)
    blob = client.wrap(DEK, key)
    for _ in range(2):
        client.close()
        assert client.unwrap(blob, key) == DEK
    client.close()


def test_renewal_whose_answer_stalls_keeps_no_other_waiting(
    jvm: Jvm,
    vault: VaultServer,
    policy: str,
    key: str,
    tmp_path: Path,
    faults: Callable[..., FaultProxy],
) -> None:
    """Nor one whose Vault is dead for long: both wait on threads of their own."""
    stalling, well = faults(vault.port), faults(vault.port)
    clients = []
    for name, proxy in (("stalling", stalling), ("well", well)):
        login = vault.token_login(tmp_path / name, policy, address=proxy.url, ttl="6s", period="6s")
        login["encryption.kms.call-timeout-ms"] = "20000"
        clients.append(jvm.client(login, raw=True))
        clients[-1].wrap(DEK, key)
    stalling.mode = "hang"
    wait_for(lambda: RENEWAL in stalling.requests)
    wait_for(lambda: RENEWAL in well.requests, 3)
    for client in clients:
        client.close()


def test_approle_logs_in_once(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    """Once a JVM: the catalog's client and what arrives there of it share one login."""
    client = jvm.client(vault.approle_login(secret, policy, address=proxy.url))
    elsewhere = client.travelled()
    with ThreadPoolExecutor(8) as pool:
        wrapped = pool.map(lambda copy: copy.wrap(DEK, key), [client, elsewhere] * 8)
        assert {client.unwrap(blob, key) for blob in wrapped} == {DEK}
    assert proxy.requests.count(LOGIN) == 1
    assert "x-vault-token" not in proxy.headers[proxy.requests.index(LOGIN)]


def test_approle_first_used_by_many_at_once(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    client = jvm.client(vault.approle_login(secret, policy, address=proxy.url), raw=True)
    proxy.mode = "slow"
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: client.wrap(DEK, key), range(6)))
    assert proxy.requests.count(LOGIN) == 1


def test_approle_logs_in_again_when_its_token_is_gone(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    client = jvm.client(vault.approle_login(secret, policy, address=proxy.url), raw=True)
    blob = client.wrap(DEK, key)
    vault.revoke(proxy.headers[-1]["x-vault-token"])
    proxy.forget()
    assert client.unwrap(blob, key) == DEK
    unwrap = f"POST /v1/transit/decrypt/{key}"
    assert proxy.requests == [unwrap, LOGIN, unwrap]


def test_approle_token_is_renewed_up_to_its_maximum_and_then_replaced(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    login = vault.approle_login(
        secret, policy, address=proxy.url, token_ttl="3s", token_max_ttl="5s"
    )
    client = jvm.client(login, raw=True)
    blob = client.wrap(DEK, key)
    time.sleep(3)
    assert client.unwrap(blob, key) == DEK
    assert RENEWAL in proxy.requests
    assert proxy.requests.count(LOGIN) == 1
    time.sleep(2.5)
    assert client.unwrap(blob, key) == DEK
    assert proxy.requests.count(LOGIN) == 2


def test_approle_that_nobody_uses_makes_no_tokens(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    login = vault.approle_login(
        secret, policy, address=proxy.url, token_ttl="2s", token_max_ttl="2s"
    )
    client = jvm.client(login, raw=True)
    client.wrap(DEK, key)
    wait_for(lambda: proxy.requests.count(LOGIN) == 2)  # it was used since the first
    time.sleep(2.5)
    assert proxy.requests.count(LOGIN) == 2
    client.close()


@pytest.mark.parametrize("wrong", ["secret id", "role id", "mount"])
def test_approle_that_vault_does_not_know(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, wrong: str
) -> None:
    login = vault.approle_login(secret, policy)
    if wrong == "secret id":
        write_secret(secret, "wrong-only-for-tests")
    elif wrong == "role id":
        login[f"{PREFIX}role-id"] = "nobody"
    else:
        login[f"{PREFIX}approle-mount"] = "elsewhere"
    with pytest.raises(LoginFailedError) as raised:
        jvm.client(login, raw=True).wrap(DEK, key)
    refused(
        raised, key, secret.read_text().strip(), login[f"{PREFIX}role-id"], str(secret), "secret id"
    )


def test_refused_secret_id_is_not_tried_with_every_call(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    """Vault locks a role out after some; a new secret id is tried at once."""
    login = vault.approle_login(secret, policy, address=proxy.url)
    good = secret.read_text()
    write_secret(secret, "wrong-only-for-tests")
    told = set()
    for client in [jvm.client(login, raw=True), jvm.client(login, raw=True)] * 2:
        with pytest.raises(LoginFailedError) as raised:
            client.wrap(DEK, key)
        refused(raised, key, "wrong-only-for-tests", "invalid role or secret ID", "after 60 s")
        told.add(str(raised.value))
    assert len(told) == 1
    assert proxy.requests == [LOGIN]
    write_secret(secret, good.strip())
    jvm.client(login, raw=True).wrap(DEK, key)
    assert proxy.requests.count(LOGIN) == 2


def test_approle_whose_secret_id_is_used_up(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    login = vault.approle_login(secret, policy, address=proxy.url, secret_id_num_uses=1)
    client = jvm.client(login, raw=True)
    blob = client.wrap(DEK, key)
    vault.revoke(proxy.headers[-1]["x-vault-token"])
    with pytest.raises(LoginFailedError) as raised:
        client.unwrap(blob, key)
    refused(raised, key, secret.read_text().strip(), "used up")


def test_approle_elsewhere_with_the_secret_id_in_a_variable(
    jvm: Jvm, vault: VaultServer, policy: str, key: str
) -> None:
    vault.call("POST", "sys/auth/team/spark", {"type": "approle"})
    role = "auth/team/spark/role/spark"
    vault.call("POST", role, {"token_policies": [policy]})
    own = {"secret_id": jvm.environment["ICEBERG_CRYPTO_TEST_PASSWORD"]}
    vault.call("POST", f"{role}/custom-secret-id", own)
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": vault.address,
        f"{PREFIX}approle-mount": "team/spark",
        f"{PREFIX}role-id": vault.call("GET", f"{role}/role-id")["data"]["role_id"],
        f"{PREFIX}secret-id-env": "ICEBERG_CRYPTO_TEST_PASSWORD",
    }
    client = jvm.client(properties, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK


def test_policy_that_an_approle_lacks(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    """It does not log in again for that: the secret id may be used once here."""
    login = vault.approle_login(secret, policy, address=proxy.url, secret_id_num_uses=1)
    client = jvm.client(login, raw=True)
    client.wrap(DEK, key)
    other = vault.make_key()
    for _ in range(3):
        with pytest.raises(AccessDeniedError) as raised:
            client.wrap(DEK, other)
        assert type(raised.value) is AccessDeniedError
        assert "may not encrypt" in str(raised.value)
    assert proxy.requests.count(LOGIN) == 1
    client.wrap(DEK, key)


def test_policy_that_an_approle_lacks_whose_token_may_not_look_at_itself(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    login = vault.approle_login(secret, policy, address=proxy.url, token_no_default_policy=True)
    client = jvm.client(login, raw=True)
    client.wrap(DEK, key)
    other = vault.make_key()
    for _ in range(3):
        with pytest.raises(AccessDeniedError, match="may not encrypt"):
            client.wrap(DEK, other)
    assert proxy.requests.count(LOGIN) == 1


def test_policy_that_an_approle_gains(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy
) -> None:
    """Vault gives it to the role's next token."""
    login = vault.approle_login(secret, "default", address=proxy.url)
    client = jvm.client(login, raw=True)
    with pytest.raises(AccessDeniedError):
        client.wrap(DEK, key)
    for role in vault.call("LIST", "auth/approle/role")["data"]["keys"]:
        found = vault.call("GET", f"auth/approle/role/{role}/role-id")["data"]["role_id"]
        if found == login[f"{PREFIX}role-id"]:
            vault.call("POST", f"auth/approle/role/{role}", {"token_policies": [policy]})
    vault.revoke(proxy.headers[-1]["x-vault-token"])
    client.wrap(DEK, key)


@pytest.mark.parametrize("kind", ["token", "approle"])
def test_no_secret_travels_or_shows(
    jvm: Jvm, vault: VaultServer, policy: str, key: str, secret: Path, proxy: FaultProxy, kind: str
) -> None:
    make = vault.token_login if kind == "token" else vault.approle_login
    client = jvm.client(make(secret, policy, address=proxy.url))
    blob = client.wrap(DEK, key)
    assert client.travelled().unwrap(blob, key) == DEK
    secrets = {secret.read_text().strip(), proxy.headers[-1]["x-vault-token"]}
    shown = client.serialized().decode("latin-1") + client.text() + str(client.metrics())
    shown += jvm.log.read_text()
    for hidden in secrets:
        assert hidden not in shown
    assert str(secret) in client.serialized().decode("latin-1")
    assert client.text() == f"Vault at {proxy.url} (transit)"
