"""How the Vault client logs in: tokens that rotate, are renewed and expire, AppRole, and where secrets never are."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from doubles.faults import Mode
from harness.programs import wait_for
from harness.refused import explained
from harness.refused import refused as must_be_refused
from servers.vault import write_secret
from servers.vault_world import VaultWorld

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


def test_token_in_a_variable(at: VaultWorld) -> None:
    token = at.vault.make_token(at.policy, id=at.jvm.environment["ICEBERG_CRYPTO_TEST_TOKEN"])
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": at.vault.address,
        f"{PREFIX}token-env": "ICEBERG_CRYPTO_TEST_TOKEN",
    }
    client = at.jvm.client(properties, raw=True)
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK
    at.vault.revoke(token)
    with pytest.raises(LoginFailedError) as raised:
        client.wrap(DEK, at.key)
    refused(raised, at.key, token, "environment variable ICEBERG_CRYPTO_TEST_TOKEN", "was revoked")


def test_wrong_token(at: VaultWorld) -> None:
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": at.vault.address,
        f"{PREFIX}token-env": "ICEBERG_CRYPTO_TEST_WRONG",
    }
    with pytest.raises(LoginFailedError) as raised:
        at.jvm.client(properties, raw=True).wrap(DEK, at.key)
    wrong = at.jvm.environment["ICEBERG_CRYPTO_TEST_WRONG"]
    refused(raised, at.key, wrong, "ICEBERG_CRYPTO_TEST_WRONG", "is not of this Vault")


def test_token_file_that_rotates(at: VaultWorld) -> None:
    client = at.token()
    blob = client.wrap(DEK, at.key)
    old = at.secret.read_text().strip()
    at.vault.revoke(old)
    with pytest.raises(LoginFailedError) as raised:
        client.unwrap(blob, at.key)
    refused(raised, at.key, old, f"file {at.secret}", "read again")
    write_secret(at.secret, at.vault.make_token(at.policy))
    assert client.unwrap(blob, at.key) == DEK


def test_token_file_that_is_written_in_place(at: VaultWorld) -> None:
    """For a moment it is empty, gone, or has half of the new token: the old one is used as long as it is good."""
    client = at.token()
    blob = client.wrap(DEK, at.key)
    old = at.secret.read_text().strip()
    new = at.vault.make_token(at.policy)
    for moment in ("", None, new[: len(new) // 2]):
        if moment is None:
            at.secret.unlink()
        else:
            write_secret(at.secret, moment)
        assert client.unwrap(blob, at.key) == DEK
    write_secret(at.secret, new)
    assert client.unwrap(blob, at.key) == DEK
    at.vault.revoke(old)
    assert client.unwrap(blob, at.key) == DEK, "with the new one"
    write_secret(at.secret, old)
    at.vault.revoke(new)
    with pytest.raises(LoginFailedError):  # neither is good
        client.unwrap(blob, at.key)


def test_token_file_that_changes_during_the_call(at: VaultWorld) -> None:
    """Refused with the old token, and done with the new one."""
    client = at.token()
    blob = client.wrap(DEK, at.key)
    new = at.vault.make_token(at.policy)
    at.vault.revoke(at.secret.read_text().strip())
    at.proxy.forget()
    at.proxy.next = ["slow"]
    with ThreadPoolExecutor() as pool:
        unwrapped = pool.submit(client.unwrap, blob, at.key)
        wait_for(lambda: bool(at.proxy.requests))
        write_secret(at.secret, new)
        assert unwrapped.result() == DEK
    unwrap = f"POST /v1/transit/decrypt/{at.key}"
    assert at.proxy.requests == [unwrap, "GET /v1/auth/token/lookup-self", unwrap]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("", "is empty"),
        ("hvs.one\nhvs.two", "more than one line"),
        ("hvs.\u00e4\u00e4", "has characters that no secret"),
        ("hvs.a\x01b", "has characters that no secret"),
        ("hvs.a\x7f", "has characters that no secret"),
        ("hvs.a b", "has characters that no secret"),
        ("hvs.a\r\nX-Vault-Namespace: b", "more than one line"),
    ],
)
def test_token_files_that_hold_none(at: VaultWorld, content: str | None, words: str) -> None:
    client = at.token()
    if content is None:
        at.secret.unlink()
    else:
        write_secret(at.secret, content)
    call = lambda: client.wrap(DEK, at.key)  # noqa: E731
    must_be_refused(
        ConfigurationError, call, words, f"'{at.key}'", str(at.secret), secrets=["hvs."]
    )


def test_token_file_open_to_others(at: VaultWorld) -> None:
    """0640 is what Vault Agent makes."""
    client = at.token()
    for mode in (0o644, 0o640):
        at.secret.chmod(mode)
        with pytest.raises(ConfigurationError) as raised:
            client.wrap(DEK, at.key)
        words = [f"'{at.key}'", f"chmod 600 {at.secret}", "Vault Agent", "mode = 0600"]
        explained(raised.value, words, [at.secret.read_text().strip()])


def test_expired_token(at: VaultWorld) -> None:
    client = at.token(ttl="1s", renewable=False)
    blob = client.wrap(DEK, at.key)
    time.sleep(1.5)
    for attempt in (lambda: client.wrap(DEK, at.key), lambda: client.unwrap(blob, at.key)):
        with pytest.raises(LoginFailedError) as raised:
            attempt()
        refused(raised, at.key, at.secret.read_text().strip(), f"file {at.secret}", "expired")


PAGE = "<html>down for maintenance</html>"
NO_RENEWAL: dict[str, Mode] = {
    "gateway": ("status", 502, {}, PAGE),
    "page": ("status", 200, {"Content-Type": "text/html"}, PAGE),
    "empty": ("status", 204, {}, ""),
    "sign-on": ("status", 302, {"Location": "https://login.example.com/"}, ""),
    "page of a proxy": ("status", 403, {}, PAGE),
}


@pytest.mark.nightly
def test_renewable_token_outlives_its_time(at: VaultWorld) -> None:
    """Renewed while nobody uses it, and again when something else answers the first renewal."""
    proxies = {fault: at.faults(at.vault.port) for fault in NO_RENEWAL}
    used = []
    for fault, proxy in proxies.items():
        client = at.token(at.folder / fault, proxy, ttl="9s", period="9s")
        used.append((client, client.wrap(DEK, at.key)))
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
        assert client.unwrap(blob, at.key) == DEK
        client.close()


@pytest.mark.nightly
def test_token_that_a_maintenance_page_kept_from_a_look_is_renewed_later(at: VaultWorld) -> None:
    client = at.token(ttl="6s", period="6s")
    at.proxy.only, at.proxy.mode = "lookup-self", ("status", 200, {}, PAGE)
    blob = client.wrap(DEK, at.key)
    at.proxy.mode = "pass"
    client.unwrap(blob, at.key)
    wait_for(lambda: RENEWAL in at.proxy.requests, 6)
    client.close()


@pytest.mark.nightly
def test_client_that_is_closed_or_that_nobody_holds_renews_no_more(at: VaultWorld) -> None:
    """Spark closes no catalog, so the garbage collector ends the renewals."""
    proxies = [at.faults(at.vault.port), at.faults(at.vault.port)]
    clients = []
    for proxy, file in zip(proxies, ("closed", "not held"), strict=True):
        clients.append(at.token(at.folder / file, proxy, ttl="2s", period="2s"))
        clients[-1].wrap(DEK, at.key)
    closed, not_held = clients
    closed.close()
    weakly = at.jvm.view.java.lang.ref.WeakReference(not_held.java)
    at.jvm.gateway.detach(not_held.java)
    at.jvm.view.System.gc()
    assert weakly.get() is None
    for proxy in proxies:
        proxy.forget()
    time.sleep(2.5)
    assert [proxy.requests for proxy in proxies] == [[], []]
    with pytest.raises(LoginFailedError):
        closed.wrap(DEK, at.key)


def test_closed_client_starts_again(at: VaultWorld) -> None:
    client = at.approle()
    blob = client.wrap(DEK, at.key)
    for _ in range(2):
        client.close()
        assert client.unwrap(blob, at.key) == DEK
    client.close()


@pytest.mark.nightly
def test_renewal_whose_answer_stalls_keeps_no_other_waiting(at: VaultWorld) -> None:
    """Nor one whose Vault is dead for long: both wait on threads of their own."""
    stalling, well = at.faults(at.vault.port), at.faults(at.vault.port)
    clients = []
    for name, proxy in (("stalling", stalling), ("well", well)):
        login = at.vault.token_login(
            at.folder / name, at.policy, address=proxy.url, ttl="6s", period="6s"
        )
        login["encryption.kms.call-timeout-ms"] = "20000"
        clients.append(at.jvm.client(login, raw=True))
        clients[-1].wrap(DEK, at.key)
    stalling.mode = "hang"
    wait_for(lambda: RENEWAL in stalling.requests)
    wait_for(lambda: RENEWAL in well.requests, 3)
    for client in clients:
        client.close()


def test_approle_logs_in_once(at: VaultWorld) -> None:
    """Once a JVM: the catalog's client and what arrives there of it share one login."""
    client = at.jvm.client(at.role())
    elsewhere = client.travelled()
    with ThreadPoolExecutor(8) as pool:
        wrapped = pool.map(lambda copy: copy.wrap(DEK, at.key), [client, elsewhere] * 8)
        assert {client.unwrap(blob, at.key) for blob in wrapped} == {DEK}
    assert at.proxy.requests.count(LOGIN) == 1
    assert "x-vault-token" not in at.proxy.headers[at.proxy.requests.index(LOGIN)]


def test_approle_first_used_by_many_at_once(at: VaultWorld) -> None:
    client = at.approle()
    at.proxy.mode = "slow"
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: client.wrap(DEK, at.key), range(6)))
    assert at.proxy.requests.count(LOGIN) == 1


def test_approle_logs_in_again_when_its_token_is_gone(at: VaultWorld) -> None:
    client = at.approle()
    blob = client.wrap(DEK, at.key)
    at.vault.revoke(at.proxy.headers[-1]["x-vault-token"])
    at.proxy.forget()
    assert client.unwrap(blob, at.key) == DEK
    unwrap = f"POST /v1/transit/decrypt/{at.key}"
    assert at.proxy.requests == [unwrap, LOGIN, unwrap]


@pytest.mark.nightly
def test_approle_token_is_renewed_up_to_its_maximum_and_then_replaced(at: VaultWorld) -> None:
    client = at.approle(token_ttl="3s", token_max_ttl="8s")
    blob = client.wrap(DEK, at.key)
    time.sleep(3)
    assert client.unwrap(blob, at.key) == DEK
    assert RENEWAL in at.proxy.requests
    assert at.proxy.requests.count(LOGIN) == 1
    time.sleep(5.5)
    assert client.unwrap(blob, at.key) == DEK
    assert at.proxy.requests.count(LOGIN) == 2


@pytest.mark.nightly
def test_approle_that_nobody_uses_makes_no_tokens(at: VaultWorld) -> None:
    client = at.approle(token_ttl="2s", token_max_ttl="2s")
    client.wrap(DEK, at.key)
    wait_for(lambda: at.proxy.requests.count(LOGIN) == 2)  # it was used since the first
    time.sleep(2.5)
    assert at.proxy.requests.count(LOGIN) == 2
    client.close()


@pytest.mark.parametrize("wrong", ["secret id", "role id", "mount"])
def test_approle_that_vault_does_not_know(at: VaultWorld, wrong: str) -> None:
    login = at.role()
    if wrong == "secret id":
        write_secret(at.secret, "wrong-only-for-tests")
    elif wrong == "role id":
        login[f"{PREFIX}role-id"] = "nobody"
    else:
        login[f"{PREFIX}approle-mount"] = "elsewhere"
    with pytest.raises(LoginFailedError) as raised:
        at.jvm.client(login, raw=True).wrap(DEK, at.key)
    told = (login[f"{PREFIX}role-id"], str(at.secret), "secret id")
    refused(raised, at.key, at.secret.read_text().strip(), *told)


def test_refused_secret_id_is_not_tried_with_every_call(at: VaultWorld) -> None:
    """Vault locks a role out after some; a new secret id is tried at once."""
    login = at.role()
    good = at.secret.read_text()
    write_secret(at.secret, "wrong-only-for-tests")
    told = set()
    for client in [at.jvm.client(login, raw=True), at.jvm.client(login, raw=True)] * 2:
        with pytest.raises(LoginFailedError) as raised:
            client.wrap(DEK, at.key)
        refused(raised, at.key, "wrong-only-for-tests", "invalid role or secret ID", "after 60 s")
        told.add(str(raised.value))
    assert len(told) == 1
    assert at.proxy.requests == [LOGIN]
    write_secret(at.secret, good.strip())
    at.jvm.client(login, raw=True).wrap(DEK, at.key)
    assert at.proxy.requests.count(LOGIN) == 2


def test_approle_whose_secret_id_is_used_up(at: VaultWorld) -> None:
    client = at.approle(secret_id_num_uses=1)
    blob = client.wrap(DEK, at.key)
    at.vault.revoke(at.proxy.headers[-1]["x-vault-token"])
    with pytest.raises(LoginFailedError) as raised:
        client.unwrap(blob, at.key)
    refused(raised, at.key, at.secret.read_text().strip(), "used up")


def test_approle_elsewhere_with_the_secret_id_in_a_variable(at: VaultWorld) -> None:
    at.vault.call("POST", "sys/auth/team/spark", {"type": "approle"})
    role = "auth/team/spark/role/spark"
    at.vault.call("POST", role, {"token_policies": [at.policy]})
    own = {"secret_id": at.jvm.environment["ICEBERG_CRYPTO_TEST_PASSWORD"]}
    at.vault.call("POST", f"{role}/custom-secret-id", own)
    properties = {
        "encryption.kms-type": "vault",
        f"{PREFIX}address": at.vault.address,
        f"{PREFIX}approle-mount": "team/spark",
        f"{PREFIX}role-id": at.vault.call("GET", f"{role}/role-id")["data"]["role_id"],
        f"{PREFIX}secret-id-env": "ICEBERG_CRYPTO_TEST_PASSWORD",
    }
    client = at.jvm.client(properties, raw=True)
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK


def test_policy_that_an_approle_lacks(at: VaultWorld) -> None:
    """It does not log in again for that: the secret id may be used once here."""
    client = at.approle(secret_id_num_uses=1)
    client.wrap(DEK, at.key)
    other = at.vault.make_key()
    for _ in range(3):
        with pytest.raises(AccessDeniedError) as raised:
            client.wrap(DEK, other)
        assert type(raised.value) is AccessDeniedError
        assert "may not encrypt" in str(raised.value)
    assert at.proxy.requests.count(LOGIN) == 1
    client.wrap(DEK, at.key)


def test_policy_that_an_approle_lacks_whose_token_may_not_look_at_itself(at: VaultWorld) -> None:
    client = at.approle(token_no_default_policy=True)
    client.wrap(DEK, at.key)
    other = at.vault.make_key()
    for _ in range(3):
        with pytest.raises(AccessDeniedError, match="may not encrypt"):
            client.wrap(DEK, other)
    assert at.proxy.requests.count(LOGIN) == 1


def test_policy_that_an_approle_gains(at: VaultWorld) -> None:
    """Vault gives it to the role's next token."""
    login = at.vault.approle_login(at.secret, "default", address=at.proxy.url)
    client = at.jvm.client(login, raw=True)
    with pytest.raises(AccessDeniedError):
        client.wrap(DEK, at.key)
    for role in at.vault.call("LIST", "auth/approle/role")["data"]["keys"]:
        found = at.vault.call("GET", f"auth/approle/role/{role}/role-id")["data"]["role_id"]
        if found == login[f"{PREFIX}role-id"]:
            at.vault.call("POST", f"auth/approle/role/{role}", {"token_policies": [at.policy]})
    at.vault.revoke(at.proxy.headers[-1]["x-vault-token"])
    client.wrap(DEK, at.key)


def test_no_secret_travels_or_shows(at: VaultWorld) -> None:
    client = at.jvm.client(at.role())
    blob = client.wrap(DEK, at.key)
    assert client.travelled().unwrap(blob, at.key) == DEK
    secrets = {at.secret.read_text().strip(), at.proxy.headers[-1]["x-vault-token"]}
    shown = client.serialized().decode("latin-1") + client.text() + str(client.metrics())
    shown += at.jvm.log.read_text()
    for hidden in secrets:
        assert hidden not in shown
    assert str(at.secret) in client.serialized().decode("latin-1")
    assert client.text() == f"Vault at {at.proxy.url} (transit)"
