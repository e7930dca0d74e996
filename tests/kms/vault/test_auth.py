"""Logins of Spark on Kubernetes at Vault: its service account (TokenReview is a double), a JWT, a TLS certificate."""

import time
from pathlib import Path
from typing import Literal

import pytest
from doubles.faults import FaultProxy
from harness.files import secret_file
from harness.jvm import Jvm
from harness.programs import wait_for
from harness.refused import explained
from harness.tls import ClientCertificate, TestAuthority, make_client_certificate
from servers.kubernetes import Cluster
from servers.vault import VaultServer, write_secret

from pyspark_iceberg_crypto.errors import ConfigurationError, LoginFailedError

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.vault."
PAGE = "<html>down for maintenance</html>"
KINDS = ["kubernetes", "jwt"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "service-account-token"


def logins(proxy: FaultProxy) -> int:
    return sum(request.endswith("/login") for request in proxy.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_login(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, proxy: FaultProxy, kind: str
) -> None:
    """Once a JVM, with no token in the request; and what travels is the path of the file."""
    client = jvm.client(cluster.login(kind, file, policy, address=proxy.url))
    blob = client.wrap(DEK, key)
    assert client.travelled().unwrap(blob, key) == DEK
    assert logins(proxy) == 1
    login = next(
        headers
        for request, headers in zip(proxy.requests, proxy.headers, strict=True)
        if request == f"POST /v1/auth/{kind}/login"
    )
    assert "x-vault-token" not in login
    travels = client.serialized().decode("latin-1")
    assert str(file) in travels
    shown = travels + client.text() + str(client.metrics()) + jvm.log.read_text()
    for secret in (file.read_text().strip(), proxy.headers[-1]["x-vault-token"]):
        assert secret not in shown


@pytest.mark.parametrize("kind", KINDS)
def test_token_file_that_kubernetes_replaces(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, proxy: FaultProxy, kind: str
) -> None:
    """The next login takes the new one; the old one is no good any more."""
    client = jvm.client(cluster.login(kind, file, policy, address=proxy.url), raw=True)
    blob = client.wrap(DEK, key)
    cluster.vault.revoke(proxy.headers[-1]["x-vault-token"])
    cluster.issuer.deleted.add(file.read_text().strip())
    write_secret(file, cluster.issuer.token())
    proxy.forget()
    assert client.unwrap(blob, key) == DEK
    assert logins(proxy) == 1
    assert file.read_text().strip().encode() in b"".join(proxy.bodies)


REFUSED: dict[str, tuple[str, dict[str, object], str]] = {
    "kubernetes, another account": (
        "kubernetes",
        {"kubernetes.io": {"namespace": "data", "serviceaccount": {"name": "web", "uid": "u"}}},
        "service account name not authorized",
    ),
    "kubernetes, expired": ("kubernetes", {"seconds": -600}, "403"),
    "kubernetes, another audience": ("kubernetes", {"audience": "others"}, "audience"),
    "jwt, another subject": ("jwt", {"sub": "system:serviceaccount:data:web"}, "(sub) claim"),
    "jwt, expired": ("jwt", {"seconds": -600}, "expired"),
    "jwt, another audience": ("jwt", {"audience": "others"}, "audience"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tokens_that_vault_refuses(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, proxy: FaultProxy, case: str
) -> None:
    """They are not sent again with each query; another one is, at once."""
    kind, claims, words = REFUSED[case]
    login = cluster.login(kind, file, policy, address=proxy.url)
    write_secret(file, cluster.issuer.token(**claims))  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(LoginFailedError) as raised:
            jvm.client(login, raw=True).wrap(DEK, key)
        explained(
            raised.value,
            [f"login refused at auth/{kind}", f"'{key}'", str(file), words, "after 60 s"],
            [file.read_text().strip()],
        )
    assert logins(proxy) == 1
    write_secret(file, cluster.issuer.token())
    jvm.client(login, raw=True).wrap(DEK, key)


@pytest.mark.parametrize("kind", KINDS)
def test_role_or_mount_that_is_not_there(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, kind: str
) -> None:
    login = cluster.login(kind, file, policy)
    for name, value in (("role", "nobody"), ("mount", "elsewhere")):
        with pytest.raises(LoginFailedError) as raised:
            jvm.client({**login, f"{PREFIX}{kind}-{name}": value}, raw=True).wrap(DEK, key)
        explained(raised.value, ["login refused", f"'{key}'", value, f"{kind}-mount"])


def test_kubernetes_that_does_not_review(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path
) -> None:
    """Vault answers as to a bad token."""
    login = cluster.login("kubernetes", file, policy)
    cluster.reviews.broken = True
    try:
        with pytest.raises(LoginFailedError) as raised:
            jvm.client(login, raw=True).wrap(DEK, key)
    finally:
        cluster.reviews.broken = False
    explained(raised.value, ["login refused at auth/kubernetes", "system:auth-delegator"])


@pytest.mark.nightly
def test_token_that_lives_is_used_while_nobody_can_log_in(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, proxy: FaultProxy
) -> None:
    """After two thirds of its life another one is asked for: so there is time until it ends."""
    client = jvm.client(
        cluster.login(
            "jwt", file, policy, address=proxy.url, token_ttl="9s", token_explicit_max_ttl="9s"
        ),
        raw=True,
    )
    blob = client.wrap(DEK, key)
    ends = time.monotonic() + 9
    proxy.only, proxy.mode = "/login", ("status", 503, {}, PAGE)
    wait_for(lambda: logins(proxy) == 2)
    assert client.unwrap(blob, key) == DEK
    proxy.mode = "pass"
    wait_for(lambda: logins(proxy) == 3, ends - time.monotonic())
    time.sleep(max(0, ends + 0.5 - time.monotonic()))
    proxy.mode = ("status", 503, {}, PAGE)
    assert client.unwrap(blob, key) == DEK
    client.close()


def test_login_that_a_maintenance_page_answers(
    jvm: Jvm, cluster: Cluster, policy: str, key: str, file: Path, proxy: FaultProxy
) -> None:
    client = jvm.client(cluster.login("jwt", file, policy, address=proxy.url), raw=True)
    proxy.only, proxy.mode = "/login", ("status", 200, {}, PAGE)
    with pytest.raises(ConfigurationError) as raised:
        client.wrap(DEK, key)
    explained(raised.value, ["does not answer as Vault does", f"'{key}'"], ["html"])
    proxy.mode = "pass"
    client.wrap(DEK, key)


@pytest.mark.parametrize(
    "kind", ["EC", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("RSA", "Ed25519"))]
)
def test_certificate(
    jvm: Jvm,
    private: VaultServer,
    authority: TestAuthority,
    tmp_path: Path,
    kind: Literal["EC", "RSA", "Ed25519"],
) -> None:
    key = private.make_key()
    certificate = make_client_certificate(tmp_path, kind=kind)
    properties = private.certificate_login(certificate, private.driver_policy(key))
    client = jvm.client(properties, raw=True)
    blob = client.wrap(DEK, key)
    assert client.travelled().unwrap(blob, key) == DEK
    travels = client.serialized().decode("latin-1")
    assert str(certificate.key_file) in travels
    assert certificate.key_file.read_text().splitlines()[1] not in travels + jvm.log.read_text()
    without_role = {name: value for name, value in properties.items() if "cert-role" not in name}
    assert jvm.client(without_role, raw=True).unwrap(blob, key) == DEK


@pytest.mark.nightly
def test_certificate_that_is_replaced(jvm: Jvm, private: VaultServer, tmp_path: Path) -> None:
    """The old one stays in use while only one of the two files is there."""
    key = private.make_key()
    policy = private.driver_policy(key)
    old = make_client_certificate(tmp_path)
    properties = private.certificate_login(old, policy, token_ttl="1s", token_explicit_max_ttl="1s")
    properties.pop(f"{PREFIX}cert-role")
    client = jvm.client(properties, raw=True)
    blob = client.wrap(DEK, key)
    (tmp_path / "new").mkdir()
    new = make_client_certificate(tmp_path / "new")
    role = private.certificate_login(new, policy)[f"{PREFIX}cert-role"]

    old.file.write_text(new.file.read_text())
    time.sleep(1.2)
    assert client.unwrap(blob, key) == DEK, "the key file is still the old one"
    old.key_file.write_text(new.key_file.read_text())
    time.sleep(1.2)
    for other in private.call("LIST", "auth/cert/certs")["data"]["keys"]:
        if other != role:
            private.call("DELETE", f"auth/cert/certs/{other}")
    assert client.unwrap(blob, key) == DEK


def test_certificate_that_vault_does_not_know(
    jvm: Jvm, private: VaultServer, tmp_path: Path
) -> None:
    key = private.make_key()
    known = make_client_certificate(tmp_path, "known")
    unknown = make_client_certificate(tmp_path, "unknown")
    properties = {
        **private.certificate_login(known, private.driver_policy(key)),
        f"{PREFIX}cert-file": str(unknown.file),
        f"{PREFIX}cert-key-file": str(unknown.key_file),
    }
    with pytest.raises(LoginFailedError) as raised:
        jvm.client(properties, raw=True).wrap(DEK, key)
    explained(
        raised.value,
        ["login refused at auth/cert", f"'{key}'", str(unknown.file), "ends TLS"],
        ["PRIVATE KEY"],
    )


def test_certificate_files_that_hold_none(jvm: Jvm, private: VaultServer, tmp_path: Path) -> None:
    good, other = (make_client_certificate(tmp_path, name) for name in ("good", "other"))
    properties = private.certificate_login(good)

    def words(certificate: ClientCertificate) -> str:
        files = {
            f"{PREFIX}cert-file": str(certificate.file),
            f"{PREFIX}cert-key-file": str(certificate.key_file),
        }
        with pytest.raises(ConfigurationError) as raised:
            jvm.client({**properties, **files}, raw=True).wrap(DEK, "k")
        explained(raised.value, ["'k'"], ["PRIVATE KEY", "BEGIN"])
        return str(raised.value)

    assert "does not have the private key of the certificate" in words(
        ClientCertificate(good.file, other.key_file)
    )
    other.file.chmod(0o600)
    assert "has no private key" in words(ClientCertificate(good.file, other.file))
    assert "cannot be read as a certificate" in words(
        ClientCertificate(tmp_path / "missing.pem", good.key_file)
    )
    assert "certificate" in words(ClientCertificate(good.key_file, good.key_file))
    old_style = secret_file(
        tmp_path / "old-style.pem",
        good.key_file.read_text().replace("PRIVATE KEY", "RSA PRIVATE KEY"),
    )
    assert "openssl pkcs8 -topk8" in words(ClientCertificate(good.file, old_style))
    good.key_file.chmod(0o640)
    assert "chmod 600" in words(good)
