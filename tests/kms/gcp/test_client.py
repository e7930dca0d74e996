"""The Google Cloud KMS client, against the double in doubles/gcp.py: keys, blobs and Cloud KMS's refusals."""

from collections.abc import Callable
from typing import Any

import pytest
from doubles.faults import FaultProxy
from doubles.gcp import RING, GcpKmsDouble
from doubles.gcp_keys import crc32c
from doubles.gcp_login import OWNER
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

DEK = b"0123456789abcdef"
PREFIX = "encryption.kms.gcp."
AAD = f"{PREFIX}additional-authenticated-data"

problem = problem_of(
    "Google Cloud KMS at http://127.0.0.1:", secrets=("only-for-tests", "PRIVATE KEY")
)


@pytest.fixture
def client(jvm: Jvm, properties: dict[str, str]) -> Client:
    return jvm.client(properties, raw=True)


def test_round_trip_as_a_catalog_has_it(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    client = jvm.client(properties)
    client.check(key)
    blob = client.wrap(DEK, key)
    assert client.unwrap(blob, key) == DEK
    assert client.metrics()["hits"] == 1
    assert double.login.logins == 1, "one login serves all calls"


def test_the_blob_is_the_ciphertext_that_iceberg_stores(
    client: Client, double: GcpKmsDouble, key: str
) -> None:
    """Iceberg's GcpKeyManagementClient stores EncryptResponse.ciphertext and hands it to Decrypt, both without AAD."""
    answers: list[dict[str, Any]] = []
    double.change_answer = lambda answer: answers.append(dict(answer))
    blob = client.wrap(DEK, key)
    (answer,) = answers
    assert answer["ciphertextCrc32c"] == str(crc32c(blob))
    assert double.version(key).decrypt(blob, aad=b"") == DEK
    made_elsewhere = double.version(key).encrypt(DEK, aad=b"")
    assert client.unwrap(made_elsewhere, key) == DEK


def test_a_version_in_the_key_id(client: Client, double: GcpKmsDouble, key: str) -> None:
    double.keys[key].add_version()
    blob = client.wrap(DEK, f"{key}/cryptoKeyVersions/2")
    assert double.version(key, 2).decrypt(blob, b"") == DEK, "2 wraps, although 1 is the primary"
    assert client.unwrap(blob, f"{key}/cryptoKeyVersions/2") == DEK
    assert client.unwrap(blob, key) == DEK
    with pytest.raises(KeyNotFoundError) as raised:
        client.wrap(DEK, f"{key}/cryptoKeyVersions/9")
    problem(raised, f"{key}/cryptoKeyVersions/9")


def test_additional_authenticated_data(
    jvm: Jvm, properties: dict[str, str], client: Client, double: GcpKmsDouble, key: str
) -> None:
    with_aad = jvm.client({**properties, AAD: "key-id"}, raw=True)
    blob = with_aad.wrap(DEK, f"{key}/cryptoKeyVersions/1")
    assert double.version(key).decrypt(blob, aad=key.encode()) == DEK, "the name without a version"
    assert with_aad.unwrap(blob, key) == DEK
    for reader, written in ((client, blob), (with_aad, client.wrap(DEK, key))):
        with pytest.raises(BadWrappedKeyError) as raised:
            reader.unwrap(written, key)
        problem(raised, key, AAD)


def test_additional_authenticated_data_of_the_table(
    jvm: Jvm, properties: dict[str, str], client: Client, double: GcpKmsDouble, key: str
) -> None:
    catalogs = jvm.client({**properties, AAD: "table-uuid"})
    sales, other = catalogs.of_table("uuid-of-sales"), catalogs.of_table("uuid-of-other")
    blob = sales.wrap(DEK, key)
    assert double.version(key).decrypt(blob, aad=b"uuid-of-sales") == DEK
    assert sales.unwrap(blob, key) == DEK
    later = jvm.client({**properties, AAD: "table-uuid"})
    assert later.of_table("uuid-of-sales").travelled().unwrap(blob, key) == DEK
    for reader in (other, later.of_table("uuid-of-other"), client):
        with pytest.raises(BadWrappedKeyError) as raised:
            reader.unwrap(blob, key)
        problem(raised, key, AAD)
    with pytest.raises(ConfigurationError, match="asks for the table's UUID"):
        catalogs.wrap(DEK, key)
    catalogs.check(key)


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
def test_bad_properties(
    jvm: Jvm, properties: dict[str, str], name: str, value: str, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        jvm.client({**properties, PREFIX + name: value})
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
def test_disabled_and_deleted_keys(
    client: Client, double: GcpKmsDouble, key: str, state: str
) -> None:
    blob = client.wrap(DEK, key)
    double.version(key).state = state
    for call, data in ((client.wrap, DEK), (client.unwrap, blob)):
        with pytest.raises(KeyDisabledError) as raised:
            call(data, key)
        problem(raised, key, f"current state is: {state}", "versions enable")
    double.version(key).state = "ENABLED"
    assert client.unwrap(blob, key) == DEK


def test_a_key_without_a_primary_version(client: Client, double: GcpKmsDouble, key: str) -> None:
    double.keys[key].primary = 0
    with pytest.raises(KeyDisabledError) as raised:
        client.wrap(DEK, key)
    problem(raised, key, "has no primary version")


@pytest.mark.parametrize("purpose", ["ASYMMETRIC_DECRYPT", "MAC", "RAW_ENCRYPT_DECRYPT"])
def test_keys_of_another_purpose(client: Client, double: GcpKmsDouble, purpose: str) -> None:
    other = double.add_key("other", purpose)
    for call in (client.wrap, client.unwrap):
        with pytest.raises(NotSupportedError) as raised:
            call(DEK, other)
        problem(raised, other, "incorrect key purpose", "ENCRYPT_DECRYPT")


def test_permission_denied(client: Client, double: GcpKmsDouble, key: str) -> None:
    blob = client.wrap(DEK, key)
    double.granted[OWNER] = set()
    for call, data, permission in (
        (client.wrap, DEK, "useToEncrypt"),
        (client.unwrap, blob, "useToDecrypt"),
    ):
        with pytest.raises(AccessDeniedError) as raised:
            call(data, key)
        problem(raised, key, f"cloudkms.cryptoKeyVersions.{permission}' denied", "does not exist")
        assert f"cloudkms.cryptoKeyVersions.{permission}" in raised.value.hint
    double.granted[OWNER] = {
        "cloudkms.cryptoKeyVersions.useToEncrypt",
        "cloudkms.cryptoKeyVersions.useToDecrypt",
    }
    assert client.unwrap(client.wrap(DEK, key), key) == DEK, "these two are enough"


def test_the_api_is_not_enabled(client: Client, double: GcpKmsDouble, key: str) -> None:
    double.api_enabled = False
    with pytest.raises(AccessDeniedError) as raised:
        client.wrap(DEK, key)
    problem(raised, key, "gcloud services enable cloudkms.googleapis.com")


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (404, "<html>Error 404</html>", ConfigurationError, "no answer of Cloud KMS"),
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
    jvm: Jvm,
    properties: dict[str, str],
    double: GcpKmsDouble,
    faults: Callable[..., FaultProxy],
    key: str,
    status: int,
    body: str,
    kind: type[IcebergCryptoError],
    says: str,
) -> None:
    proxy = faults(double.port)
    proxy.mode = ("status", status, {}, body)
    client = jvm.client({**properties, f"{PREFIX}endpoint": proxy.url}, raw=True)
    with pytest.raises(kind) as raised:
        client.wrap(DEK, key)
    problem(raised, key, says)


def test_checksums(client: Client, double: GcpKmsDouble, key: str) -> None:
    blob = client.wrap(DEK, key)
    assert crc32c(b"123456789") == 0xE3069283, "RFC 3720's check value"

    def damaged(call: Callable[[bytes, str], bytes], data: bytes, says: str) -> None:
        with pytest.raises(KmsUnavailableError) as raised:
            call(data, key)
        problem(raised, key, says)

    double.change_answer = lambda answer: answer.update(ciphertext="QUJD", plaintext="QUJD")
    damaged(client.wrap, DEK, "ciphertext that does not fit its checksum")
    damaged(client.unwrap, blob, "plaintext that does not fit its checksum")
    double.change_answer = lambda answer: answer.pop("verifiedPlaintextCrc32c", None)
    damaged(client.wrap, DEK, "did not confirm the checksum")
    double.change_answer = None
    double.change_request = lambda body: body.update(plaintext="QUJD", ciphertext="QUJD")
    damaged(client.wrap, DEK, "checksum in field plaintext_crc32c")
    damaged(client.unwrap, blob, "checksum in field ciphertext_crc32c")


def test_damage_on_the_way_is_tried_again(
    jvm: Jvm, properties: dict[str, str], double: GcpKmsDouble, key: str
) -> None:
    client = jvm.client(properties)
    times = iter([1])
    double.change_request = lambda body: next(times, 0) and body.update(plaintext="QUJD")
    blob = client.wrap(DEK, key)
    assert client.metrics()["retries"] == 1
    assert double.version(key).decrypt(blob, b"") == DEK
