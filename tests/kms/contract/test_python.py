"""What every KMS's Python class must do when it wraps and unwraps by itself: test_client.py's contract, without a JVM.

Java's clients are here to unwrap what Python wraps, and the other way round. The cache, retries and settings are in
unit/test_python_kms.py.
"""

import pickle
from collections.abc import Iterator

import pytest
from harness.in_python import in_python
from harness.subject import KEY, Subject, on

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    BadWrappedKeyError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import CachedKms, KeyManagementClient, Kms, from_properties

NETWORKED = ("vault", "aws", "gcp", "azure", "hadoop", "ranger")
AUTHENTIC = ("keystore", "vault", "aws", "gcp", "azure", "pkcs11", "hadoop", "ranger")


@pytest.fixture(autouse=True)
def here(kms: Subject, environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    in_python(kms.backend.environment, monkeypatch)


@pytest.fixture
def client(kms: Subject) -> Iterator[CachedKms]:
    """Of the same properties as the one in the JVM, without a cache."""
    made = from_properties({**kms.properties, "encryption.kms.cache.ttl-ms": "0"})
    yield made
    made.close()


def test_java_and_python_unwrap_what_the_other_one_wraps(kms: Subject, client: CachedKms) -> None:
    java = kms.client()
    for length in (16, 24, 32):
        key = bytes(range(length))
        assert java.unwrap(client.wrap_key(key, kms.key), kms.key) == key
        assert client.unwrap_key(java.wrap(key, kms.key), kms.key) == key
    assert client.authenticates_wrapping(kms.key) == java.authenticates(kms.key)


def test_the_class_itself_is_a_client(kms: Subject) -> None:
    assert isinstance(kms.reader, KeyManagementClient)
    wrapped = kms.reader.wrap_key(KEY, kms.key)
    arrived: Kms = pickle.loads(pickle.dumps(kms.reader))
    assert arrived == kms.reader
    assert arrived.for_table("t").unwrap_key(wrapped, kms.key) == KEY
    shown = repr(kms.reader) + str(kms.reader) + str(pickle.dumps(kms.reader)) + repr(vars(arrived))
    assert not [secret for secret in (*kms.backend.secrets, KEY.decode()) if secret in shown]


@on(*AUTHENTIC)
def test_rotation(kms: Subject, client: CachedKms) -> None:
    key = kms.new_key()
    old = client.wrap_key(KEY, key)
    kms.admin.rotate_key(key)
    new = client.wrap_key(KEY, key)
    assert client.unwrap_key(old, key) == client.unwrap_key(new, key) == KEY
    assert kms.client().unwrap(new, key) == KEY


@on(*AUTHENTIC)
def test_a_flipped_bit_or_one_that_was_cut_off(kms: Subject, client: CachedKms) -> None:
    blob = client.wrap_key(KEY, kms.key)
    header = {"aws": 36}.get(kms.backend.kind, len(b"ICWK") + 2 + len(kms.backend.kind) + 4)
    for place in range(0, len(blob), max(1, len(blob) // 20)):
        changed = bytearray(blob)
        changed[place] ^= 1 << place % 8
        with pytest.raises(IcebergCryptoError) as raised:
            client.unwrap_key(bytes(changed), kms.key)
        named = (KeyNotFoundError, AccessDeniedError, NotSupportedError) if place < header else ()
        assert isinstance(raised.value, (BadWrappedKeyError, *named)), (place, raised.value)
    for wrong in (b"", blob[:1], blob[: len(blob) // 2], blob[:-1], blob + b"\0"):
        with pytest.raises(BadWrappedKeyError) as raised:
            client.unwrap_key(wrong, kms.key)
        assert f"'{kms.key}'" in raised.value.message
        assert raised.value.hint


@on("keystore", "vault", "gcp", "azure", "pkcs11", "hadoop", "ranger")
def test_of_another_key(kms: Subject, client: CachedKms) -> None:
    blob = client.wrap_key(KEY, kms.other)
    kms.refused(BadWrappedKeyError, lambda: client.unwrap_key(blob, kms.key), kms.key)


def test_of_another_kms(kms: Subject, client: CachedKms) -> None:
    name = "vault" if kms.backend.kind != "vault" else "keystore"
    foreign = b"ICWK\x01" + bytes([len(name)]) + name.encode() + b"\0\0\0\1" + bytes(44)
    with pytest.raises(BadWrappedKeyError, match=f"was wrapped by KMS type '{name}'"):
        client.unwrap_key(foreign, kms.key)


def test_a_key_that_is_missing(kms: Subject, client: CachedKms) -> None:
    blob = client.wrap_key(KEY, kms.key)
    missing = kms.key[:-8] + "00000000"
    kms.refused(KeyNotFoundError, lambda: client.wrap_key(KEY, missing), missing)
    if kms.backend.kind != "aws":  # which does not look at the key id that a caller names
        kms.refused(KeyNotFoundError, lambda: client.unwrap_key(blob, missing), missing)


@on("ministack", "gcp", "azure")
def test_a_key_that_is_disabled(kms: Subject, client: CachedKms) -> None:
    key = kms.new_key()
    blob = client.wrap_key(KEY, key)
    assert kms.backend.disable is not None
    kms.backend.disable(key, True)
    kms.refused(KeyDisabledError, lambda: client.wrap_key(KEY, key), key)
    kms.refused(KeyDisabledError, lambda: client.unwrap_key(blob, key), key)
    kms.backend.disable(key, False)
    assert client.unwrap_key(blob, key) == KEY


@on("vault", "gcp", "azure", "hadoop", "ranger")
def test_permission_taken_and_given_back(kms: Subject, client: CachedKms) -> None:
    blob = client.wrap_key(KEY, kms.key)
    assert kms.backend.deny is not None
    kms.backend.deny(True)
    try:
        kms.refused(AccessDeniedError, lambda: client.wrap_key(KEY, kms.key), kms.key)
        kms.refused(AccessDeniedError, lambda: client.unwrap_key(blob, kms.key), kms.key)
    finally:
        kms.backend.deny(False)
    assert client.unwrap_key(blob, kms.key) == KEY


@on(*NETWORKED)
@pytest.mark.parametrize(
    "fault",
    [
        *(pytest.param(fault, marks=pytest.mark.nightly) for fault in ("down", "reset")),
        ("status", 503, {}, "<html>"),
    ],
)
def test_an_outage(kms: Subject, client: CachedKms, fault: object) -> None:
    """One request an attempt, so that nobody waits for a library's own retries."""
    proxy = kms.backend.proxy
    assert proxy is not None
    blob = client.wrap_key(KEY, kms.key)
    assert client.unwrap_key(blob, kms.key) == KEY
    before = client.calls()
    proxy.forget()
    proxy.mode = fault
    kms.refused(KmsUnavailableError, lambda: client.unwrap_key(blob, kms.key), kms.key)
    assert client.calls().retries - before.retries == 2
    assert len(proxy.requests) == (0 if fault == "down" else 3)
    proxy.mode = "pass"
    assert client.unwrap_key(blob, kms.key) == KEY


@on("aws")
def test_of_another_table(kms: Subject) -> None:
    bound = from_properties(
        {**kms.properties, "encryption.kms.aws.encryption-context.table": "{table-uuid}"}
    )
    blob = bound.for_table("one").wrap_key(KEY, kms.key)
    assert bound.for_table("one").unwrap_key(blob, kms.key) == KEY
    for other in ("two", "none"):
        client = bound.for_table(other)
        kms.refused(
            BadWrappedKeyError, lambda who=client: who.unwrap_key(blob, kms.key), kms.key, "UUID"
        )
