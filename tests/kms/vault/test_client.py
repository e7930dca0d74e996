"""The Vault client, against a real Vault: keys, wrapped keys, policies, and Vault's refusals."""

import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from harness.jvm import Client, Jvm
from harness.refused import explained
from servers.vault import VaultServer, key_calls
from servers.vault_world import VaultWorld

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)

DEK = b"0123456789abcdef"
HEADER = b"ICWK\x01\x05vault"
PREFIX = "encryption.kms.vault."
READ_BARE = {PREFIX + "read-bare": "true"}
Login = Callable[..., dict[str, str]]


@pytest.fixture
def login(vault: VaultServer, tmp_path: Path) -> Login:
    """`login(policy, ...)`: properties of a client with a token of these policies."""
    return partial(vault.token_login, tmp_path / "token")


@pytest.fixture
def client(jvm: Jvm, vault: VaultServer, login: Login, key: str) -> Client:
    """With the least-privilege policy for the key, and no more."""
    return jvm.client(login(vault.driver_policy(key)), raw=True)


def problem(
    raised: pytest.ExceptionInfo[IcebergCryptoError], vault: VaultServer, key: str, *words: str
) -> None:
    """The error names the KMS and the key, says these words, and has a hint and no secret."""
    always = ("Vault at http://127.0.0.1:", f"'{key}'")
    explained(raised.value, [*always, *words], [vault.root, "hvs."])


@pytest.mark.parametrize("key_type", ["aes128-gcm96", "aes256-gcm96", "chacha20-poly1305"])
def test_key_types_that_work(jvm: Jvm, vault: VaultServer, login: Login, key_type: str) -> None:
    key = vault.make_key(type=key_type)
    client = jvm.client(login(vault.driver_policy(key)))
    client.check(key)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK


def test_wrapped_key_is_a_header_and_vaults_ciphertext(at: VaultWorld, client: Client) -> None:
    blob = client.wrap(DEK, at.key)
    assert blob.startswith(HEADER + (1).to_bytes(4, "big") + b"vault:v1:")
    request = {
        "ciphertext": blob[len(HEADER) + 4 :].decode(),
        "associated_data": base64.b64encode(at.key.encode()).decode(),
    }
    answer = at.vault.call("POST", f"transit/decrypt/{at.key}", request)
    assert base64.b64decode(answer["data"]["plaintext"]) == DEK


def test_version_below_the_minimum(vault: VaultServer, client: Client, key: str) -> None:
    old = client.wrap(DEK, key)
    vault.rotate_key(key)
    new = client.wrap(DEK, key)
    vault.configure_key(key, min_decryption_version=2)
    with pytest.raises(KeyDisabledError) as raised:
        client.unwrap(old, key)
    problem(raised, vault, key, "min_decryption_version", f"transit/keys/{key}/config")
    assert client.unwrap(new, key) == DEK
    vault.configure_key(key, min_decryption_version=1)
    assert client.unwrap(old, key) == DEK


@pytest.mark.parametrize("bit", [0x01, 0x02, 0x80])
def test_a_flipped_bit_is_noticed_wherever_it_is(client: Client, key: str, bit: int) -> None:
    """Base64's unused bits too, which Vault itself ignores."""
    blob = client.wrap(DEK, key)
    for position in range(len(blob)):
        altered = bytearray(blob)
        altered[position] ^= bit
        with pytest.raises((BadWrappedKeyError, NotSupportedError)) as raised:
            client.unwrap(bytes(altered), key)
        later = altered[len(b"ICWK")] > 1  # the layout, which a later version may well have
        assert type(raised.value) is (NotSupportedError if later else BadWrappedKeyError)
        assert f"'{key}'" in str(raised.value)
        assert raised.value.hint


def test_versions_that_contradict(vault: VaultServer, client: Client, key: str) -> None:
    vault.rotate_key(key)
    blob = client.wrap(DEK, key)
    with pytest.raises(BadWrappedKeyError) as raised:
        client.unwrap(blob.replace(b"\x00\x02vault:v2:", b"\x00\x01vault:v2:"), key)
    problem(raised, vault, key, "header says version 1")
    with pytest.raises(KmsUnavailableError) as raised:
        client.unwrap(blob.replace(b"\x00\x02vault:v2:", b"\x00\x09vault:v9:"), key)
    problem(raised, vault, key, "version is too new", "was the wrapped key changed")


def test_blob_shown_under_another_name(vault: VaultServer, client: Client, key: str) -> None:
    """The same key material under another name: the key id is authenticated."""
    blob = client.wrap(DEK, key)
    request = {"ciphertext": blob[len(HEADER) + 4 :].decode(), "associated_data": "b3RoZXI="}
    status, answer = vault.request("POST", f"transit/decrypt/{key}", request, vault.root)
    assert (status, answer["errors"]) == (400, ["cipher: message authentication failed"])


@pytest.mark.parametrize("first", [True, False], ids=["first call", "later call"])
def test_no_login_creates_a_key_by_wrapping(at: VaultWorld, login: Login, first: bool) -> None:
    """Not even one that may: Vault's encrypt makes a missing key otherwise."""
    everything = at.vault.make_policy(
        'path "transit/*" { capabilities = ["create", "update", "read"] }'
    )
    client = at.jvm.client(login(everything), raw=True)
    if not first:
        client.wrap(DEK, at.key)
    with pytest.raises(KeyNotFoundError) as raised:
        client.wrap(DEK, "mistyped")
    problem(raised, at.vault, "mistyped", "has no key")
    assert "mistyped" not in at.vault.key_names()


def test_vault_would_have_created_it(vault: VaultServer) -> None:
    """What the client guards against, and the words of the refusal that it asks for."""
    request = {"plaintext": base64.b64encode(DEK).decode()}
    vault.call("POST", "transit/encrypt/made-by-encrypting", request)
    assert "made-by-encrypting" in vault.key_names()
    status, answer = vault.request(
        "POST", "transit/encrypt/not-made", {**request, "type": "ecdsa-p256"}, vault.root
    )
    assert (status, answer["errors"]) == (
        400,
        ["key type ecdsa-p256 not supported for this operation"],
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"derived": True}, "is a derived key"),
        ({"derived": True, "convergent_encryption": True}, "is a derived key"),
        ({"type": "rsa-2048"}, "non-AEAD cipher suite rsa-2048"),
        ({"type": "ecdsa-p256"}, "non-AEAD cipher suite ecdsa-p256"),
        ({"type": "hmac", "key_size": 32}, "non-AEAD cipher suite hmac"),
    ],
    ids=lambda value: "" if isinstance(value, str) else json.dumps(value),
)
def test_keys_that_cannot_wrap(
    at: VaultWorld, login: Login, parameters: dict[str, Any], words: str
) -> None:
    unfit = at.vault.make_key(**parameters)
    client = at.jvm.client(login(at.vault.driver_policy(unfit, at.key)), raw=True)
    blob = client.wrap(DEK, at.key)
    for attempt in (lambda: client.wrap(DEK, unfit), lambda: client.unwrap(blob, unfit)):
        with pytest.raises(NotSupportedError) as raised:
            attempt()
        problem(raised, at.vault, unfit, words, "aes256-gcm96")


def test_what_anybody_wrapped_for_an_rsa_key(jvm: Jvm, vault: VaultServer, login: Login) -> None:
    """Vault decrypts it, but not with the associated data that always goes along: wrapping is authenticated."""
    rsa = vault.make_key(type="rsa-2048")
    pem = vault.read_key(rsa)["keys"]["1"]["public_key"]
    public = load_pem_public_key(pem.encode())
    assert isinstance(public, RSAPublicKey)
    made = public.encrypt(DEK, OAEP(MGF1(SHA256()), SHA256(), None))
    ciphertext = "vault:v1:" + base64.b64encode(made).decode()
    answer = vault.call("POST", f"transit/decrypt/{rsa}", {"ciphertext": ciphertext})
    assert base64.b64decode(answer["data"]["plaintext"]) == DEK, "the control"
    client = jvm.client(login(vault.driver_policy(rsa)), raw=True)
    assert client.authenticates(rsa)
    with pytest.raises(NotSupportedError) as raised:
        client.unwrap(HEADER + (1).to_bytes(4, "big") + ciphertext.encode(), rsa)
    problem(raised, vault, rsa, "non-AEAD cipher suite rsa-2048", "aes256-gcm96")


def bare(vault: VaultServer, key: str, **parameters: str) -> bytes:
    """As a client without our header wraps: Vault's ciphertext, without associated data."""
    request = {"plaintext": base64.b64encode(DEK).decode(), **parameters}
    ciphertext: str = vault.call("POST", f"transit/encrypt/{key}", request)["data"]["ciphertext"]
    return ciphertext.encode()


@pytest.fixture
def reads_bare(jvm: Jvm, vault: VaultServer, login: Login, key: str) -> Client:
    return jvm.client(login(vault.driver_policy(key)) | READ_BARE, raw=True)


def test_bare_ciphertexts_of_another_application(at: VaultWorld) -> None:
    """It encrypts what its users choose: such a KEK would be known to them, and sign metadata."""
    with pytest.raises(NotSupportedError) as raised:
        at.token().unwrap(bare(at.vault, at.key), at.key)
    told = (at.proxy.url, f"{PREFIX}read-bare=true", "docs/kms/vault.md")
    problem(raised, at.vault, at.key, *told)
    assert not [request for request in at.proxy.requests if "/decrypt/" in request]


def test_bare_ciphertexts_are_unwrapped(at: VaultWorld, login: Login) -> None:
    client = at.jvm.client(
        login(at.vault.driver_policy(at.key), address=at.proxy.url) | READ_BARE, raw=True
    )
    first = bare(at.vault, at.key)
    assert client.unwrap(first, at.key) == DEK
    at.proxy.forget()
    assert client.unwrap(first, at.key) == DEK
    assert len(at.proxy.requests) == 1, "whether the key authenticates was asked before"
    at.vault.rotate_key(at.key)
    newer = bare(at.vault, at.key)
    assert newer.startswith(b"vault:v2:")
    assert client.unwrap(newer, at.key) == client.unwrap(first, at.key) == DEK


def test_bare_ciphertexts_if_wanted(at: VaultWorld, login: Login, reads_bare: Client) -> None:
    options = login(at.vault.driver_policy(at.key)) | {PREFIX + "wrapped-format": "bare"}
    plain = at.jvm.client(options, raw=True)
    blob = plain.wrap(DEK, at.key)
    assert blob.startswith(b"vault:v1:")
    answer = at.vault.call("POST", f"transit/decrypt/{at.key}", {"ciphertext": blob.decode()})
    assert base64.b64decode(answer["data"]["plaintext"]) == DEK
    assert plain.unwrap(blob, at.key) == reads_bare.unwrap(blob, at.key) == DEK
    # rotate_master_key unwraps and wraps: with the default it gives headers
    headed = reads_bare.wrap(reads_bare.unwrap(blob, at.key), at.key)
    assert headed.startswith(HEADER) and plain.unwrap(headed, at.key) == DEK
    with pytest.raises(ConfigurationError, match="wrapped-format"):
        at.jvm.client(options | {PREFIX + "wrapped-format": "none"}, raw=True)


def test_a_header_is_not_taken_off(vault: VaultServer, reads_bare: Client, key: str) -> None:
    """What was bound to its key id stays bound, and what was not does not look so, if bare ones are read."""
    blob = reads_bare.wrap(DEK, key)
    with pytest.raises(BadWrappedKeyError) as raised:
        reads_bare.unwrap(blob[len(HEADER) + 4 :], key)
    problem(raised, vault, key)
    with pytest.raises(BadWrappedKeyError):
        reads_bare.unwrap(HEADER + (1).to_bytes(4, "big") + bare(vault, key), key)
    with pytest.raises(BadWrappedKeyError):
        reads_bare.unwrap(bare(vault, vault.make_key()), key)


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_a_flipped_bit_in_a_bare_ciphertext(at: VaultWorld, reads_bare: Client, bit: int) -> None:
    blob = bare(at.vault, at.key)
    for position in range(len(blob)):
        altered = bytearray(blob)
        altered[position] ^= bit
        with pytest.raises((BadWrappedKeyError, KmsUnavailableError)) as raised:
            reads_bare.unwrap(bytes(altered), at.key)
        other_version = altered[len(b"vault:v") :].split(b":")[0] in (b"3", b"5", b"9")
        assert type(raised.value) is (KmsUnavailableError if other_version else BadWrappedKeyError)
        assert f"'{at.key}'" in str(raised.value)


def test_bare_ciphertexts_of_an_rsa_key(jvm: Jvm, vault: VaultServer, login: Login) -> None:
    """Anybody with the public key can make one: metadata that is authenticated would prove nothing."""
    rsa = vault.make_key(type="rsa-2048")
    options = login(vault.driver_policy(rsa)) | READ_BARE
    client = jvm.client(options, raw=True)
    blob = bare(vault, rsa)
    damaged = blob[:-8] + b"AAAAAA=="
    with pytest.raises(IcebergCryptoError):
        client.unwrap(damaged, rsa)  # tells nothing of the key
    plain = jvm.client(options | {PREFIX + "wrapped-format": "bare"}, raw=True)
    for attempt in (lambda: client.unwrap(blob, rsa), lambda: plain.wrap(DEK, rsa)):
        for _ in range(2):
            with pytest.raises(NotSupportedError) as raised:
                attempt()
            problem(raised, vault, rsa, "non-AEAD cipher suite rsa-2048", "aes256-gcm96")


@pytest.mark.parametrize(
    ("granted", "refused"),
    [("encrypt", "decrypt"), ("decrypt", "encrypt"), (None, "decrypt")],
)
@pytest.mark.parametrize("looks", [True, False], ids=["default policy", "no default policy"])
def test_permission_denied(
    at: VaultWorld, login: Login, client: Client, granted: str | None, refused: str, looks: bool
) -> None:
    policy = at.vault.make_policy(
        f'path "transit/{granted}/{at.key}" {{ capabilities = ["update"] }}'
        if granted
        else "# nothing"
    )
    denied = at.jvm.client(login(policy, no_default_policy=not looks), raw=True)
    with pytest.raises(AccessDeniedError) as raised:
        denied.wrap(DEK, at.key)
    assert type(raised.value) is AccessDeniedError
    problem(raised, at.vault, at.key, f"may not {refused}", f'path "transit/{refused}/{at.key}"')
    assert ("its policies do not allow it" in str(raised.value)) == looks
    if granted != "decrypt":
        with pytest.raises(AccessDeniedError) as raised:
            denied.unwrap(client.wrap(DEK, at.key), at.key)
        problem(raised, at.vault, at.key, "may not decrypt")


@pytest.mark.parametrize(
    "key_id", ["a/b", "..", "a..b", "", " ", "a b", "k?x=1", "k%2f", "ä", "-k"]
)
def test_names_that_no_key_has(client: Client, key_id: str) -> None:
    for attempt in (lambda: client.wrap(DEK, key_id), lambda: client.unwrap(DEK, key_id)):
        with pytest.raises(ConfigurationError, match="cannot be the name of a key"):
            attempt()


def test_no_engine_at_the_mount(jvm: Jvm, vault: VaultServer, login: Login, key: str) -> None:
    anything = vault.make_policy('path "*" { capabilities = ["create", "update"] }')
    client = jvm.client({**login(anything), f"{PREFIX}transit-mount": "elsewhere"}, raw=True)
    with pytest.raises(ConfigurationError) as raised:
        client.wrap(DEK, key)
    problem(raised, vault, key, "no transit engine at 'elsewhere'", f"{PREFIX}transit-mount")


def test_another_engine_at_the_mount_gets_no_key(at: VaultWorld, login: Login) -> None:
    """A key-value engine would store what it is sent."""
    at.vault.call("POST", "sys/mounts/kv", {"type": "kv"})
    anything = at.vault.make_policy('path "*" { capabilities = ["create", "update"] }')
    client = at.jvm.client({**login(anything), f"{PREFIX}transit-mount": "kv"}, raw=True)
    with pytest.raises(ConfigurationError) as raised:
        client.wrap(DEK, at.key)
    problem(raised, at.vault, at.key, "no transit engine at 'kv'")
    assert at.vault.request("GET", f"kv/encrypt/{at.key}", token=at.vault.root)[0] == 404


def test_mount_and_namespace_are_used(at: VaultWorld, login: Login) -> None:
    """Vault's open-source core has no namespaces and ignores the header; that it is sent is seen here."""
    at.vault.call("POST", "sys/mounts/team/keys", {"type": "transit"})
    key = at.vault.make_key(mount="team/keys")
    anything = at.vault.make_policy('path "team/*" { capabilities = ["update"] }')
    proxy = at.proxy
    named = {f"{PREFIX}transit-mount": "/team/keys/", f"{PREFIX}namespace": "team/data"}
    client = at.jvm.client({**login(anything, address=proxy.url), **named}, raw=True)
    assert client.unwrap(client.wrap(DEK, key), key) == DEK
    assert proxy.requests[-1] == f"POST /v1/team/keys/decrypt/{key}"
    assert {seen["x-vault-namespace"] for seen in proxy.headers} == {"team/data"}
    assert client.text() == f"Vault at {proxy.url} (team/keys, namespace team/data)"


def test_first_wrap_asks_more_and_later_ones_do_not(at: VaultWorld) -> None:
    client, proxy = at.token(), at.proxy
    client.wrap(DEK, at.key)
    assert [path.partition("/v1/")[2] for path in proxy.requests] == [
        "auth/token/lookup-self",  # can it be renewed?
        f"transit/decrypt/{at.key}",  # is it a transit engine?
        f"transit/encrypt/{at.key}",
        f"transit/decrypt/{at.key}",  # is the key id authenticated?
    ]
    assert key_calls(proxy) == 1
    assert base64.b64encode(DEK) not in proxy.bodies[0] + proxy.bodies[1]
    proxy.forget()
    client.unwrap(client.wrap(DEK, at.key), at.key)
    assert len(proxy.requests) == key_calls(proxy) == 2


def test_vault_that_ignores_associated_data(at: VaultWorld) -> None:
    """As Vault did before 1.13: it decrypts whatever the associated data. The last answer is made up."""
    client = at.token()
    decrypted = json.dumps({"data": {"plaintext": base64.b64encode(DEK).decode()}})
    at.proxy.next = ["pass", "pass", "pass", ("status", 200, {}, decrypted)]
    with pytest.raises(NotSupportedError) as raised:
        client.wrap(DEK, at.key)
    problem(raised, at.vault, at.key, "Vault 1.13 or newer")
