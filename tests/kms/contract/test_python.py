"""What every KMS's Python class must do when it wraps and unwraps by itself, beside the contract of test_client.py.

Java's clients are here to unwrap what Python wraps, and the other way round. The cache, retries and settings are in
unit/test_python_kms.py.
"""

import pickle
from collections.abc import Iterator

import pytest
from harness.forks import in_a_fork
from harness.in_python import in_python
from harness.subject import KEY, Subject, on

from pyspark_iceberg_crypto import BadWrappedKeyError, KmsUnavailableError
from pyspark_iceberg_crypto.kms import CachedKms, KeyManagementClient, Kms, from_properties

NETWORKED = ("vault", "aws", "gcp", "azure", "hadoop", "ranger")
THROTTLED = ("status", 429, {"Retry-After": "1"}, "<html>slow down</html>")


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


@on(*NETWORKED)
@pytest.mark.parametrize(
    "fault",
    [
        *(pytest.param(fault, marks=pytest.mark.nightly) for fault in ("down", "reset", THROTTLED)),
        ("status", 503, {}, "<html>"),
    ],
)
def test_an_outage(kms: Subject, client: CachedKms, fault: object) -> None:
    """One request an attempt, so that nobody waits for a library's own retries.

    A KMS that is called too often is tried until the time is over, and not only three times.
    """
    proxy = kms.backend.proxy
    assert proxy is not None
    if fault == THROTTLED:
        limits = {"encryption.kms.cache.ttl-ms": "0", "encryption.kms.retry.timeout-ms": "1000"}
        client = from_properties({**kms.properties, **limits})
    blob = client.wrap_key(KEY, kms.key)
    assert client.unwrap_key(blob, kms.key) == KEY
    before = client.calls()
    proxy.forget()
    proxy.mode = fault
    kms.refused(KmsUnavailableError, lambda: client.unwrap_key(blob, kms.key), kms.key)
    retries = client.calls().retries - before.retries
    assert retries > 4 if fault == THROTTLED else retries == 2
    assert len(proxy.requests) == (0 if fault == "down" else retries + 1)
    proxy.mode = "pass"
    assert client.unwrap_key(blob, kms.key) == KEY


def test_in_a_forked_process(kms: Subject, client: CachedKms) -> None:
    """It has connections and a login of its own; its parent keeps those that it has."""
    wrapped = client.wrap_key(KEY, kms.key)

    def action() -> bool:
        other = client.wrap_key(KEY, kms.key)
        return client.unwrap_key(wrapped, kms.key) == client.unwrap_key(other, kms.key) == KEY

    assert in_a_fork(action, 10)
    assert client.unwrap_key(wrapped, kms.key) == KEY


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
