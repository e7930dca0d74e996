"""The Google Cloud KMS client, against the double in doubles/gcp.py: keys, blobs and Cloud KMS's refusals."""

from collections.abc import Callable
from typing import Any

import pytest
from doubles.gcp import RING, GcpKmsDouble
from doubles.gcp_keys import crc32c
from doubles.gcp_login import OWNER
from doubles.gcp_world import DEK, NAMED, SECRETS, GcpWorld
from harness.jvm import Client, Jvm
from harness.refused import problem_of

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

PREFIX = "encryption.kms.gcp."
AAD = f"{PREFIX}additional-authenticated-data"

problem = problem_of(NAMED, secrets=SECRETS)


@pytest.fixture
def client(jvm: Jvm, properties: dict[str, str]) -> Client:
    return jvm.client(properties, raw=True)


def test_the_blob_is_the_ciphertext_that_iceberg_stores(at: GcpWorld, client: Client) -> None:
    """Iceberg's GcpKeyManagementClient stores EncryptResponse.ciphertext and hands it to Decrypt, both without AAD."""
    answers: list[dict[str, Any]] = []
    at.double.change_answer = lambda answer: answers.append(dict(answer))
    blob = client.wrap(DEK, at.key)
    (answer,) = answers
    assert answer["ciphertextCrc32c"] == str(crc32c(blob))
    assert at.double.version(at.key).decrypt(blob, aad=b"") == DEK
    made_elsewhere = at.double.version(at.key).encrypt(DEK, aad=b"")
    assert client.unwrap(made_elsewhere, at.key) == DEK


def test_a_version_in_the_key_id(at: GcpWorld, client: Client) -> None:
    at.double.keys[at.key].add_version()
    blob = client.wrap(DEK, f"{at.key}/cryptoKeyVersions/2")
    assert at.double.version(at.key, 2).decrypt(blob, b"") == DEK, (
        "2 wraps, although 1 is the primary"
    )
    assert client.unwrap(blob, f"{at.key}/cryptoKeyVersions/2") == DEK
    assert client.unwrap(blob, at.key) == DEK
    with pytest.raises(KeyNotFoundError) as raised:
        client.wrap(DEK, f"{at.key}/cryptoKeyVersions/9")
    problem(raised, f"{at.key}/cryptoKeyVersions/9")


def test_additional_authenticated_data(at: GcpWorld, client: Client) -> None:
    with_aad = at.client(additional_authenticated_data="key-id")
    blob = with_aad.wrap(DEK, f"{at.key}/cryptoKeyVersions/1")
    assert at.double.version(at.key).decrypt(blob, aad=at.key.encode()) == DEK, (
        "the name without a version"
    )
    assert with_aad.unwrap(blob, at.key) == DEK
    for reader, written in ((client, blob), (with_aad, client.wrap(DEK, at.key))):
        with pytest.raises(BadWrappedKeyError) as raised:
            reader.unwrap(written, at.key)
        problem(raised, at.key, AAD)


def test_additional_authenticated_data_of_the_table(at: GcpWorld, client: Client) -> None:
    catalogs = at.client(raw=False, additional_authenticated_data="table-uuid")
    sales, other = catalogs.of_table("uuid-of-sales"), catalogs.of_table("uuid-of-other")
    blob = sales.wrap(DEK, at.key)
    assert at.double.version(at.key).decrypt(blob, aad=b"uuid-of-sales") == DEK
    assert sales.unwrap(blob, at.key) == DEK
    later = at.client(raw=False, additional_authenticated_data="table-uuid")
    assert later.of_table("uuid-of-sales").travelled().unwrap(blob, at.key) == DEK
    for reader in (other, later.of_table("uuid-of-other"), client):
        with pytest.raises(BadWrappedKeyError) as raised:
            reader.unwrap(blob, at.key)
        problem(raised, at.key, AAD)
    with pytest.raises(ConfigurationError, match="asks for the table's UUID"):
        catalogs.wrap(DEK, at.key)
    catalogs.check(at.key)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("endpoint", "http://cloudkms.googleapis.com", "is not an address"),
        ("endpoint", "cloudkms.googleapis.com", "is not an address"),
        ("endpoint", "https://user:word@cloudkms.googleapis.com", "is not an address"),
        ("endpoint", "https://cloudkms.googleapis.com/v1", "is not an address"),
        ("endpoint", "http://127.0.0.1.example.com", "is not an address"),
        ("endpoint", " ", "is empty"),
        ("credentials-file", "", "is empty"),
        ("additional-authenticated-data", "key", "neither key-id, table-uuid nor none"),
    ],
)
def test_bad_properties(at: GcpWorld, name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        at.jvm.client({**at.properties, PREFIX + name: value})
    assert PREFIX + name in str(raised.value)


def test_google_s_own_address_is_the_default(jvm: Jvm) -> None:
    for changes in ({}, {f"{PREFIX}endpoint": "https://cloudkms.googleapis.com/"}):
        client = jvm.client({"encryption.kms-type": "gcp", **changes})
        assert client.text() == "Google Cloud KMS at https://cloudkms.googleapis.com"


@pytest.mark.parametrize(
    "key_id",
    [
        "k1",
        "",
        RING,
        f"{RING}/cryptoKeys/",
        f"{RING}/cryptoKeys/k1/",
        f"{RING}/cryptoKeys/k1:encrypt",
        f"{RING}/cryptoKeys/../k1",
        f"{RING}/cryptoKeys/k1?x=y",
        f"{RING}/cryptoKeys/k1/cryptoKeyVersions/0",
        f"{RING}/cryptoKeys/k1/cryptoKeyVersions/latest",
        f"//cloudkms.googleapis.com/{RING}/cryptoKeys/k1",
        f"{RING}/cryptoKeys/k1\nHost: x",
    ],
)
def test_bad_key_ids(client: Client, double: GcpKmsDouble, key_id: str) -> None:
    for call in (client.wrap, client.unwrap):
        with pytest.raises(ConfigurationError, match="is not the name of a key") as raised:
            call(DEK, key_id)
        assert "projects/PROJECT/locations/" in raised.value.hint
    assert double.login.logins == 0


@pytest.mark.parametrize("state", ["DISABLED", "DESTROY_SCHEDULED", "DESTROYED"])
def test_disabled_and_deleted_keys(at: GcpWorld, client: Client, state: str) -> None:
    blob = client.wrap(DEK, at.key)
    at.double.version(at.key).state = state
    for call, data in ((client.wrap, DEK), (client.unwrap, blob)):
        with pytest.raises(KeyDisabledError) as raised:
            call(data, at.key)
        problem(raised, at.key, f"current state is: {state}", "versions enable")
    at.double.version(at.key).state = "ENABLED"
    assert client.unwrap(blob, at.key) == DEK


def test_a_key_without_a_primary_version(at: GcpWorld, client: Client) -> None:
    at.double.keys[at.key].primary = 0
    at.refuses(KeyDisabledError, client, "has no primary version")


@pytest.mark.parametrize("purpose", ["ASYMMETRIC_DECRYPT", "MAC", "RAW_ENCRYPT_DECRYPT"])
def test_keys_of_another_purpose(client: Client, double: GcpKmsDouble, purpose: str) -> None:
    other = double.add_key("other", purpose)
    for call in (client.wrap, client.unwrap):
        with pytest.raises(NotSupportedError) as raised:
            call(DEK, other)
        problem(raised, other, "incorrect key purpose", "ENCRYPT_DECRYPT")


def test_permission_denied(at: GcpWorld, client: Client) -> None:
    blob = client.wrap(DEK, at.key)
    at.double.granted[OWNER] = set()
    for call, data, permission in (
        (client.wrap, DEK, "useToEncrypt"),
        (client.unwrap, blob, "useToDecrypt"),
    ):
        with pytest.raises(AccessDeniedError) as raised:
            call(data, at.key)
        problem(
            raised, at.key, f"cloudkms.cryptoKeyVersions.{permission}' denied", "does not exist"
        )
        assert f"cloudkms.cryptoKeyVersions.{permission}" in raised.value.hint
    at.double.granted[OWNER] = {
        "cloudkms.cryptoKeyVersions.useToEncrypt",
        "cloudkms.cryptoKeyVersions.useToDecrypt",
    }
    assert client.unwrap(client.wrap(DEK, at.key), at.key) == DEK, "these two are enough"


def test_the_api_is_not_enabled(at: GcpWorld, client: Client) -> None:
    at.double.api_enabled = False
    at.refuses(AccessDeniedError, client, "gcloud services enable cloudkms.googleapis.com")


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (404, "<html>Error 404</html>", ConfigurationError, "not an answer of Cloud KMS"),
        (302, "", ConfigurationError, "HTTP 302"),
        (200, "<html>Welcome!</html>", ConfigurationError, "without a ciphertext"),
        (200, '{"ciphertext": []}', ConfigurationError, "without a ciphertext"),
        (200, '{"ciphertext": "!"}', KmsUnavailableError, "does not fit its checksum"),
        (200, '{"ciphertext": "QUJD"}', KmsUnavailableError, "does not fit its checksum"),
        (400, '{"error": "no object"}', ConfigurationError, "HTTP 400"),
        (503, "<html>busy</html>", KmsUnavailableError, "HTTP 503"),
        (
            403,
            '{"error": {"code": 403, "message": "no scopes", "status": "PERMISSION_DENIED", "details":'
            ' [7, {"reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]}}',
            AccessDeniedError,
            "cloud-platform",
        ),
        (
            400,
            '{"error": {"code": 400, "message": "wrong location", "status": "INVALID_ARGUMENT"}}',
            ConfigurationError,
            "wrong location",
        ),
    ],
)
def test_answers_of_something_else(
    at: GcpWorld, status: int, body: str, kind: type[IcebergCryptoError], says: str
) -> None:
    proxy = at.faults(at.double.port)
    proxy.mode = ("status", status, {}, body)
    client = at.client(endpoint=proxy.url)
    at.refuses(kind, client, says)


def test_checksums(at: GcpWorld, client: Client) -> None:
    blob = client.wrap(DEK, at.key)
    assert crc32c(b"123456789") == 0xE3069283, "RFC 3720's check value"

    def damaged(call: Callable[[bytes, str], bytes], data: bytes, says: str) -> None:
        with pytest.raises(KmsUnavailableError) as raised:
            call(data, at.key)
        problem(raised, at.key, says)

    at.double.change_answer = lambda answer: answer.update(ciphertext="QUJD", plaintext="QUJD")
    damaged(client.wrap, DEK, "ciphertext that does not fit its checksum")
    damaged(client.unwrap, blob, "plaintext that does not fit its checksum")
    at.double.change_answer = lambda answer: answer.pop("verifiedPlaintextCrc32c", None)
    damaged(client.wrap, DEK, "did not confirm the checksum")
    at.double.change_answer = None
    at.double.change_request = lambda body: body.update(plaintext="QUJD", ciphertext="QUJD")
    damaged(client.wrap, DEK, "checksum in field plaintext_crc32c")
    damaged(client.unwrap, blob, "checksum in field ciphertext_crc32c")


def test_damage_on_the_way_is_tried_again(at: GcpWorld) -> None:
    client = at.client(raw=False)
    times = iter([1])
    at.double.change_request = lambda body: next(times, 0) and body.update(plaintext="QUJD")
    blob = client.wrap(DEK, at.key)
    assert client.metrics()["retries"] == 1
    assert at.double.version(at.key).decrypt(blob, b"") == DEK
