"""Vault's set-up helper in Python, against a real Vault; and how the tests come by their Vault."""

import traceback
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from doubles.faults import FaultProxy
from harness.files import secret_file
from harness.jvm import Jvm
from harness.tls import TestAuthority, make_client_certificate
from servers.kubernetes import Cluster
from servers.vault import VaultServer, vault_binary, write_secret

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms import Vault

DEK = b"0123456789abcdef"
MOUNT = "set-up"


@pytest.fixture(scope="module")
def mount(vault: VaultServer) -> str:
    """A transit engine of this module's own, for tests that look at all keys."""
    vault.call("POST", f"sys/mounts/{MOUNT}", {"type": "transit"})
    return MOUNT


@pytest.fixture
def admin(vault: VaultServer, tmp_path: Path) -> Vault:
    """Who manages keys and does nothing else."""
    policy = vault.make_policy(
        f'path "{MOUNT}/keys" {{ capabilities = ["list"] }}\n'
        f'path "{MOUNT}/keys/*" {{ capabilities = ["create", "read", "update"] }}'
    )
    write_secret(tmp_path / "admin-token", vault.make_token(policy))
    return Vault(vault.address, token_file=tmp_path / "admin-token", transit_mount=MOUNT)


def test_properties() -> None:
    vault = Vault("https://vault:8200", token_env="VAULT_TOKEN")
    assert vault.properties() == {
        "encryption.kms-type": "vault",
        "encryption.kms.vault.address": "https://vault:8200",
        "encryption.kms.vault.token-env": "VAULT_TOKEN",
        "encryption.kms.vault.transit-mount": "transit",
    }


def test_all_properties(tmp_path: Path) -> None:
    vault = Vault(
        "http://vault:8200",
        role_id="role",
        secret_id_file="secret-id",
        approle_mount="spark",
        transit_mount="keys",
        namespace="team",
        ca_file=tmp_path / "ca.pem",
        allow_http=True,
    )
    assert vault.properties() == {
        "encryption.kms-type": "vault",
        "encryption.kms.vault.address": "http://vault:8200",
        "encryption.kms.vault.role-id": "role",
        "encryption.kms.vault.secret-id-file": str(Path("secret-id").absolute()),
        "encryption.kms.vault.approle-mount": "spark",
        "encryption.kms.vault.transit-mount": "keys",
        "encryption.kms.vault.namespace": "team",
        "encryption.kms.vault.ca-file": str(tmp_path / "ca.pem"),
        "encryption.kms.vault.allow-http": "true",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"address": ""}, "not the URL"),
        ({"address": "vault:8200"}, "not the URL"),
        ({"address": "http://vault:8200"}, "in plaintext"),
        ({"token_env": None}, "needs one of token_env, token_file, role_id, kubernetes_role"),
        ({"token_file": "f"}, "needs one of token_env, token_file, role_id, kubernetes_role"),
        ({"role_id": "r"}, "given: .*token_env.*role_id"),
        ({"kubernetes_role": "r"}, "given: .*token_env.*kubernetes_role"),
        ({"token_env": None, "jwt_role": "r"}, "needs one of jwt_env and jwt_file"),
        ({"jwt_file": "f"}, "another login needs none"),
        ({"token_env": None, "cert_file": "f"}, "cert_file needs cert_key_file"),
        ({"cert_role": "r"}, "cert_role has no effect without cert_file"),
        ({"kubernetes_token_file": "f"}, "kubernetes_token_file has no effect without"),
        (
            {
                "address": "http://127.0.0.1:1",
                "token_env": None,
                "cert_file": "f",
                "cert_key_file": "f",
            },
            "the login is by TLS certificate",
        ),
        ({"token_env": None, "role_id": "r"}, "needs one of secret_id_env and secret_id_file"),
        ({"secret_id_file": "f"}, "another login needs none"),
    ],
)
def test_wrong_arguments(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Vault(**{"address": "https://vault:8200", "token_env": "VAULT_TOKEN", **given})


def test_a_key_from_making_to_rotation(
    vault: VaultServer, mount: str, admin: Vault, jvm: Jvm, tmp_path: Path
) -> None:
    assert admin.list_keys() == []
    before = datetime.now(timezone.utc).replace(microsecond=0)
    made = admin.create_key("sales")
    assert (made.key_id, made.state, made.algorithm) == ("sales", "enabled", "aes256-gcm96")
    assert (made.version, made.versions) == ("1", 1)
    assert made.created is not None
    assert datetime.fromisoformat(made.created) >= before
    assert made.detail == {
        "min_decryption_version": "1",
        "derived": "false",
        "exportable": "false",
        "deletion_allowed": "false",
    }
    assert admin.create_key("hr", key_type="chacha20-poly1305").algorithm == "chacha20-poly1305"
    assert [key.key_id for key in admin.list_keys()] == ["hr", "sales"]

    driver = vault.make_policy(admin.driver_policy(["sales", "hr"]))
    properties = vault.token_login(tmp_path / "token", driver)
    client = jvm.client({**properties, "encryption.kms.vault.transit-mount": mount}, raw=True)
    blob = client.wrap(DEK, "sales")
    rotated = admin.rotate_key("sales")
    assert (rotated.version, rotated.versions, rotated.created) == ("2", 2, made.created)
    assert admin.describe_key("sales") == rotated
    assert client.unwrap(blob, "sales") == DEK
    assert b"vault:v2:" in client.wrap(DEK, "sales")


def test_keys_that_cannot_wrap_say_so(vault: VaultServer, mount: str, admin: Vault) -> None:
    for parameters in ({"derived": True}, {"type": "rsa-2048"}, {"type": "hmac", "key_size": 32}):
        key = vault.make_key(mount=mount, **parameters)
        assert admin.describe_key(key).state == "not for wrapping keys"
    with pytest.raises(ConfigurationError, match="cannot wrap keys"):
        admin.create_key("signing", key_type="ed25519")


@pytest.mark.parametrize("name", ["a/b", "..", "a..b", "", "k*", 'k" {', "ä", "+"])
def test_names_that_no_key_has(mount: str, admin: Vault, name: str) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: admin.create_key(name),
        lambda: admin.describe_key(name),
        lambda: admin.rotate_key(name),
        lambda: admin.driver_policy([name]),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigurationError, match="cannot be the name of a key"):
            attempt()


def test_policy_text() -> None:
    vault = Vault("https://vault:8200", token_env="T", transit_mount="team/keys")
    assert vault.driver_policy(["k1", "k2"]).splitlines()[1:] == [
        'path "team/keys/encrypt/k1" { capabilities = ["update"] }',
        'path "team/keys/decrypt/k1" { capabilities = ["update"] }',
        'path "team/keys/encrypt/k2" { capabilities = ["update"] }',
        'path "team/keys/decrypt/k2" { capabilities = ["update"] }',
    ]
    for wrong in ([], "k1"):
        with pytest.raises(ConfigurationError, match="a list of names"):
            vault.driver_policy(wrong)


def told(raised: pytest.ExceptionInfo[IcebergCryptoError], *words: str) -> None:
    for word in ("Vault at http", *words):
        assert word in raised.value.message
    assert raised.value.hint
    assert "hvs." not in str(raised.value)


def test_login_that_may_not(vault: VaultServer, mount: str, tmp_path: Path) -> None:
    write_secret(tmp_path / "token", vault.make_token())
    nobody = Vault(vault.address, token_file=tmp_path / "token", transit_mount=mount)
    attempts: list[Callable[[], object]] = [
        lambda: nobody.create_key("k"),
        lambda: nobody.list_keys(),
        lambda: nobody.describe_key("k"),
        lambda: nobody.rotate_key("k"),
    ]
    for attempt in attempts:
        with pytest.raises(AccessDeniedError) as raised:
            attempt()
        assert type(raised.value) is AccessDeniedError
        told(raised, "the login may not")


def test_wrong_token(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", "hvs.wrong")
    with pytest.raises(LoginFailedError) as raised:
        Vault(vault.address, token_env="T").list_keys()
    told(raised, "login refused")


@pytest.mark.parametrize("content", [None, "", "hvs.a\nhvs.b", "hvs.\u00e4", b"hvs.\xff"])
def test_tokens_that_are_none(
    vault: VaultServer, tmp_path: Path, content: str | bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        secret_file(file, content)
    with pytest.raises(ConfigurationError) as raised:
        Vault(vault.address, token_file=file).list_keys()
    assert str(file) in str(raised.value)
    assert "hvs." not in str(raised.value)


def test_token_file_open_to_others(vault: VaultServer, tmp_path: Path) -> None:
    """0640 is what Vault Agent makes."""
    write_secret(tmp_path / "token", vault.root)
    (tmp_path / "token").chmod(0o640)
    with pytest.raises(ConfigurationError, match="chmod 600") as raised:
        Vault(vault.address, token_file=tmp_path / "token").list_keys()
    assert "Vault Agent" in raised.value.hint
    assert "mode = 0600" in raised.value.hint


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_token_goes_nowhere_else(
    vault: VaultServer,
    faults: Callable[..., FaultProxy],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    status: int,
) -> None:
    """Not with a request about keys, and not the secret of a login."""
    monkeypatch.setenv("T", vault.root)
    role_id, secret_id = vault.make_approle()
    write_secret(tmp_path / "secret-id", secret_id)
    asked, other = faults(vault.port), faults(vault.port)
    asked.mode = ("status", status, {"Location": f"{other.url}/v1/transit/keys/k"}, "")
    for login in (
        Vault(asked.url, token_env="T"),
        Vault(asked.url, role_id=role_id, secret_id_file=tmp_path / "secret-id"),
    ):
        attempts: list[Callable[[], object]] = [
            lambda login=login: login.list_keys(),
            lambda login=login: login.describe_key("k"),
            lambda login=login: login.create_key("k"),
            lambda login=login: login.rotate_key("k"),
        ]
        for attempt in attempts:
            with pytest.raises(ConfigurationError) as raised:
                attempt()
            told(raised, f"redirects to another address (HTTP {status})")
    assert other.requests == []


def test_variable_that_is_not_set(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("T", raising=False)
    with pytest.raises(ConfigurationError, match="environment variable T is not set"):
        Vault(vault.address, token_env="T").list_keys()


def test_approle(
    vault: VaultServer, mount: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = vault.make_policy(f'path "{MOUNT}/keys/*" {{ capabilities = ["create", "read"] }}')
    role_id, secret_id = vault.make_approle(policy)
    write_secret(tmp_path / "secret-id", secret_id)
    login = Vault(
        vault.address,
        role_id=role_id,
        secret_id_file=tmp_path / "secret-id",
        transit_mount=mount,
    )
    key = vault.make_key(mount=mount)
    assert login.describe_key(key).key_id == key
    monkeypatch.setenv("S", secret_id)
    by_variable = Vault(vault.address, role_id=role_id, secret_id_env="S", transit_mount=mount)
    assert by_variable.describe_key(key).key_id == key
    write_secret(tmp_path / "secret-id", "wrong-secret-id")
    with pytest.raises(LoginFailedError) as raised:
        login.describe_key(key)
    told(raised, "login refused", role_id)
    assert "wrong-secret-id" not in str(raised.value)


def test_a_login_that_makes_what_is_no_token(
    vault: VaultServer, faults: Callable[..., FaultProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S", "secret-id")
    proxy = faults(vault.port)
    proxy.mode = ("status", 200, {}, '{"auth": {"client_token": "hvs.a\\n"}}')
    with pytest.raises(LoginFailedError) as raised:
        Vault(proxy.url, role_id="r", secret_id_env="S").list_keys()
    told(raised, "what auth/approle returned is not a token")
    assert "hvs." not in "".join(traceback.format_exception(raised.value))


def test_no_engine_at_the_mount(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", vault.root)
    elsewhere = Vault(vault.address, token_env="T", transit_mount="elsewhere")
    attempts: list[Callable[[], object]] = [
        lambda: elsewhere.create_key("k"),
        lambda: elsewhere.list_keys(),
        lambda: elsewhere.describe_key("k"),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigurationError) as raised:
            attempt()
        told(raised, "no transit engine at 'elsewhere'")


def test_unavailable(
    vault: VaultServer, faults: Callable[..., FaultProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T", vault.root)
    proxy = faults(vault.port)
    through = Vault(proxy.url, token_env="T")
    sealed = ("status", 503, {}, '{"errors": ["Vault is sealed"]}')
    for mode in ("down", "reset", sealed, ("status", 429, {}, ""), ("status", 500, {}, "")):
        proxy.mode = mode
        with pytest.raises(KmsUnavailableError) as raised:
            through.describe_key("k")
        told(raised, "did not describe key 'k'")


def test_private_authority(
    private: VaultServer, authority: TestAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T", private.root)
    trusting = Vault(private.address, token_env="T", ca_file=authority.ca_file)
    assert trusting.create_key("k") == trusting.describe_key("k")
    certificate = make_client_certificate(tmp_path)
    policy = private.make_policy('path "transit/keys/*" { capabilities = ["read"] }')
    private.certificate_login(certificate, policy)
    by_certificate = Vault(
        private.address,
        cert_file=certificate.file,
        cert_key_file=certificate.key_file,
        ca_file=authority.ca_file,
    )
    assert by_certificate.describe_key("k").key_id == "k"
    certificate.key_file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="private key .* is open to others"):
        by_certificate.describe_key("k")
    with pytest.raises(ConfigurationError) as raised:
        Vault(private.address, token_env="T").list_keys()
    told(raised, "certificate is not trusted")
    with pytest.raises(ConfigurationError, match="ca_file"):
        Vault(private.address, token_env="T", ca_file=tmp_path / "none.pem").list_keys()


def test_logins_of_kubernetes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service account's token (reviewed by a double), which others in the pod may read; and a JWT."""
    vault, issuer = cluster.vault, cluster.issuer
    key = vault.make_key()
    policy = vault.make_policy('path "transit/keys/*" { capabilities = ["read"] }')
    file = tmp_path / "token"
    role = cluster.login("kubernetes", file, policy)["encryption.kms.vault.kubernetes-role"]
    pod = Vault(vault.address, kubernetes_role=role, kubernetes_token_file=file)
    assert pod.describe_key(key).key_id == key
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="open to others"):
        pod.describe_key(key)
    (tmp_path / "..data").symlink_to(tmp_path)
    assert pod.describe_key(key).key_id == key
    monkeypatch.setenv("J", issuer.token())
    role = vault.jwt_login(file, policy)["encryption.kms.vault.jwt-role"]
    by_jwt = Vault(vault.address, jwt_role=role, jwt_env="J")
    assert by_jwt.describe_key(key).key_id == key
    monkeypatch.setenv("J", issuer.token(audience="others"))
    with pytest.raises(LoginFailedError) as raised:
        by_jwt.describe_key(key)
    told(raised, "login refused at auth/jwt", role)


def test_without_a_vault_the_error_names_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=rf"{tmp_path}/iceberg-crypto/vault-\w+: run `make setup`"
    ):
        vault_binary()


def test_vault_is_built_outside_of_the_tree() -> None:
    assert Path(__file__).parents[3] not in vault_binary().parents
