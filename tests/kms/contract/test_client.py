"""What every KMS client must do: one contract, seven KMSs; AWS as two programs imitate it, Hadoop KMS and Ranger's.

With the fixture `client`, by Java's client and by Python's. What is Python's alone is in test_python.py, a KMS's own
folder has what only that one does, and whole tables are in test_every_kms.py.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.in_python import in_python
from harness.jvm import Jvm
from harness.refused import refused
from harness.subject import EVERY, KEY, Subject, on

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import from_properties

UNCACHED = {"encryption.kms.cache.ttl-ms": "0"}


def nightly(value: object) -> Any:
    return pytest.param(value, marks=pytest.mark.nightly)


NETWORKED = ("vault", "aws", "gcp", "azure", "hadoop", "ranger")
AUTHENTIC = tuple(
    kind for kind in EVERY if kind != "ministack"
)  # it notices no tampering, and rotates nothing
STORED = ("keystore", "vault", "pkcs11", "hadoop")  # whose wrapped keys have a header of ours


@pytest.fixture(params=["java", "python"])
def client(
    request: pytest.FixtureRequest, kms: Subject, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The KMS's own client in the JVM, or Python's of the same properties, without a cache."""
    if request.param == "java":
        yield kms.client()
        return
    in_python(kms.backend.environment, monkeypatch)
    made = from_properties(kms.properties | UNCACHED)
    yield SimpleNamespace(wrap=made.wrap_key, unwrap=made.unwrap_key)
    made.close()


@pytest.mark.parametrize("length", [nightly(16), nightly(24), 32])
def test_round_trip(kms: Subject, length: int) -> None:
    key, client = bytes(range(length)), kms.client()
    blob = client.wrap(key, kms.key)
    assert key not in blob
    assert client.unwrap(blob, kms.key) == key
    assert client.wrap(key, kms.key) != blob
    assert blob.startswith(b"ICWK") == (kms.backend.kind in STORED)


def test_behind_cache_and_retries(kms: Subject) -> None:
    client = kms.client(raw=False)
    client.check(kms.key)
    blob = client.wrap(KEY, kms.key)
    assert client.unwrap(blob, kms.key) == KEY
    metrics = client.metrics()
    assert (metrics["hits"], metrics["retries"], metrics["errors"]) == (1, 0, 0)
    for which in (client, kms.client()):
        assert kms.where in which.text()
        assert which.authenticates(kms.key) == (kms.backend.kind != "azure"), "its keys are RSA"


def test_nothing_is_asked_at_the_start(kms: Subject) -> None:
    proxy = kms.backend.proxy
    asked = len(proxy.requests) if proxy else 0
    for raw in (True, False):
        kms.client(raw=raw).close()
    assert len(proxy.requests if proxy else ()) == asked


def test_works_again_after_close(kms: Subject) -> None:
    client = kms.client()
    blob = client.wrap(KEY, kms.key)
    client.close()
    client.close()
    assert client.unwrap(blob, kms.key) == KEY


@on(*AUTHENTIC)
def test_rotation(kms: Subject, client: Any) -> None:
    key = kms.new_key()
    old = client.wrap(KEY, key)
    kms.admin.rotate_key(key)
    fresh = kms.client()
    new = fresh.wrap(KEY, key)
    assert fresh.unwrap(old, key) == client.unwrap(new, key) == KEY
    assert fresh.unwrap(client.wrap(KEY, key), key) == KEY
    if kms.backend.kind in ("keystore", "vault", "hadoop"):  # a token is looked at every 10 s
        end = len(b"ICWK") + 2 + len(kms.backend.kind) + 4
        assert [int.from_bytes(blob[end - 4 : end], "big") for blob in (old, new)] == [1, 2]


@on(*AUTHENTIC)
@pytest.mark.parametrize("places", [20, nightly(100)])
def test_a_flipped_bit(kms: Subject, client: Any, places: int) -> None:
    """Wherever it is. In what names the key, its version or the layout, the error says that instead."""
    blob = client.wrap(KEY, kms.key)
    header = {"aws": 36}.get(kms.backend.kind, len(b"ICWK") + 2 + len(kms.backend.kind) + 4)
    for place in range(0, len(blob), max(1, len(blob) // places)):
        changed = bytearray(blob)
        changed[place] ^= 1 << place % 8
        with pytest.raises(IcebergCryptoError) as raised:
            client.unwrap(bytes(changed), kms.key)
        named = (KeyNotFoundError, AccessDeniedError, NotSupportedError) if place < header else ()
        assert isinstance(raised.value, (BadWrappedKeyError, *named)), (place, raised.value)
        assert f"'{kms.key}'" in raised.value.message
        assert raised.value.hint


@on(*AUTHENTIC)
def test_cut_off_or_longer(kms: Subject, client: Any) -> None:
    blob = client.wrap(KEY, kms.key)
    for wrong in (b"", blob[:1], blob[: len(blob) // 2], blob[:-1], blob + b"\0"):
        with pytest.raises(BadWrappedKeyError) as raised:
            client.unwrap(wrong, kms.key)
        assert f"'{kms.key}'" in raised.value.message
        assert raised.value.hint


@on("keystore", "vault", "gcp", "azure", "pkcs11", "hadoop", "ranger")
def test_of_another_key(kms: Subject, client: Any) -> None:
    """AWS's say themselves which key it was; the key id that a caller names is checked by the real one."""
    blob = client.wrap(KEY, kms.other)
    kms.refused(BadWrappedKeyError, lambda: client.unwrap(blob, kms.key), kms.key)


def test_of_another_kms(kms: Subject, client: Any) -> None:
    """Its header says whose it is; nobody is asked."""
    name = "vault" if kms.backend.kind != "vault" else "keystore"
    foreign = b"ICWK\x01" + bytes([len(name)]) + name.encode() + b"\0\0\0\1" + bytes(44)
    proxy = kms.backend.proxy
    asked = len(proxy.requests) if proxy else 0
    wrapped = f"was wrapped by KMS type '{name}'"
    with pytest.raises(BadWrappedKeyError, match=re.escape(wrapped)) as raised:
        client.unwrap(foreign, kms.key)
    assert f"'{kms.key}'" in raised.value.message
    assert len(proxy.requests if proxy else ()) == asked


def test_a_key_that_is_missing(kms: Subject, client: Any) -> None:
    blob = client.wrap(KEY, kms.key)
    missing = kms.key[:-8] + "00000000"
    kms.refused(KeyNotFoundError, lambda: client.wrap(KEY, missing), missing)
    if kms.backend.kind != "aws":  # which does not look at the key id that a caller names
        kms.refused(KeyNotFoundError, lambda: client.unwrap(blob, missing), missing)


@on("keystore", "vault", "ministack", "gcp", "azure", "pkcs11", "hadoop", "ranger")
def test_a_key_that_was_deleted(kms: Subject) -> None:
    """Where it can be had back for a time, it counts as disabled."""
    key, client = kms.new_key(), kms.client()
    blob = client.wrap(KEY, key)
    assert kms.backend.delete is not None
    kms.backend.delete(key)
    kind = KeyDisabledError if kms.backend.kind in ("aws", "gcp") else KeyNotFoundError
    for which in (client, kms.client()):
        kms.refused(kind, lambda who=which: who.wrap(KEY, key), key)
        kms.refused(kind, lambda who=which: who.unwrap(blob, key), key)
    with pytest.raises(kind) as raised:
        client.unwrap(blob, key)
    error: Any = raised.value.__cause__
    of_key = kms.jvm.view.io.icebergcrypto.kms.call.Causes.isOfKey(error.java_exception)
    assert of_key == (kms.backend.kind != "hadoop"), "then try_decrypt_value returns NULL"
    if kind is KeyDisabledError:
        assert error.java_exception.isDestroyed()


@on("vault", "hadoop", "ranger")
def test_a_key_that_was_made_again_is_another(kms: Subject) -> None:
    """Although Ranger's server gives away data keys that it encrypted under the one before."""
    key, client = kms.new_key(), kms.client()
    blob = client.wrap(KEY, key)
    assert kms.backend.delete is not None
    kms.backend.delete(key)
    kms.admin.create_key(key)
    kms.refused(
        BadWrappedKeyError, lambda: client.unwrap(blob, key), key, "deleted and created again"
    )
    assert client.unwrap(client.wrap(KEY, key), key) == KEY


@on("ministack", "gcp", "azure")
def test_a_key_that_is_disabled(kms: Subject, client: Any) -> None:
    key, cached = kms.new_key(), kms.client(raw=False)
    blob = cached.wrap(KEY, key)
    assert kms.backend.disable is not None
    kms.backend.disable(key, True)
    kms.refused(KeyDisabledError, lambda: client.wrap(KEY, key), key)
    kms.refused(KeyDisabledError, lambda: client.unwrap(blob, key), key)
    assert cached.unwrap(blob, key) == KEY, "from the cache"
    kms.backend.disable(key, False)
    assert client.unwrap(blob, key) == KEY


@on("vault", "gcp", "azure", "hadoop", "ranger")
def test_permission_taken_and_given_back(kms: Subject, client: Any) -> None:
    blob = client.wrap(KEY, kms.key)
    assert kms.backend.deny is not None
    kms.backend.deny(True)
    try:
        kms.refused(AccessDeniedError, lambda: client.wrap(KEY, kms.key), kms.key)
        kms.refused(AccessDeniedError, lambda: client.unwrap(blob, kms.key), kms.key)
    finally:
        kms.backend.deny(False)
    assert client.unwrap(blob, kms.key) == KEY


def test_no_secret_travels(kms: Subject) -> None:
    """Nor what other parts of the catalog are configured with."""
    others = {"s3.secret-access-key": "only-for-tests-1", "token": "only-for-tests-2"}
    hidden = [*kms.backend.secrets, *others.values(), KEY.decode()]
    for raw in (True, False):
        client = kms.client(raw=raw, **others)
        blob = client.wrap(KEY, kms.key)
        sent = client.serialized()
        assert kms.where.strip("'").rpartition("'")[2].encode() in sent, "the search finds text"
        for secret in hidden:
            for text in (sent.decode("latin-1"), client.text()):
                assert secret not in text
        assert client.travelled().unwrap(blob, kms.key) == KEY
    log = kms.jvm.log.read_text()
    assert not [secret for secret in hidden if secret in log]


SECRET_PROPERTIES = {
    "keystore": "password",
    "vault": "token",
    "aws": "secret-access-key",
    "pkcs11": "pin",
}


@on(*SECRET_PROPERTIES)
def test_a_secret_as_a_property_is_refused(kms: Subject) -> None:
    name = f"encryption.kms.{kms.backend.kind}.{SECRET_PROPERTIES[kms.backend.kind]}"
    told = (f"Property {name} would show a secret",)
    given = kms.properties | {name: "only-for-tests"}
    for raw in (True, False):
        call = lambda raw=raw: kms.jvm.client(given, raw=raw)  # noqa: E731
        refused(ConfigurationError, call, *told, secrets=["only-for-tests"])


FAULTS: dict[str, Any] = {
    "down": "down",
    "reset": "reset",
    "throttled": ("status", 429, {"Retry-After": "1"}, "<html>slow down</html>"),
    "broken": ("status", 500, {}, "oops"),
    "gateway": ("status", 502, {}, "<html>bad gateway</html>"),
    "unavailable": ("status", 503, {}, "<html>"),
}


@on(*NETWORKED)
@pytest.mark.parametrize("fault", [*map(nightly, list(FAULTS)[:-1]), "unavailable"])
def test_an_outage(kms: Subject, fault: str) -> None:
    """The client itself does not try again; the one in front of it does, and has what is in its cache.

    A KMS that is called too often is tried until the time is over, and not only three times.
    """
    raw, proxy = kms.client(), kms.backend.proxy
    assert proxy is not None
    limit = {"encryption.kms.retry.timeout-ms": "1000"} if fault == "throttled" else {}
    cached, uncached = kms.client(raw=False), kms.client(raw=False, **UNCACHED, **limit)
    blob = cached.wrap(KEY, kms.key)
    for each in (raw, uncached):
        assert each.unwrap(blob, kms.key) == KEY
    proxy.forget()
    proxy.mode = FAULTS[fault]
    kms.refused(KmsUnavailableError, lambda: raw.wrap(KEY, kms.key), kms.key)
    kms.refused(KmsUnavailableError, lambda: raw.unwrap(blob, kms.key), kms.key)
    assert len(proxy.requests) == (0 if fault == "down" else 2)
    kms.refused(KmsUnavailableError, lambda: uncached.unwrap(blob, kms.key), kms.key)
    retries = uncached.metrics()["retries"]
    assert retries > 4 if fault == "throttled" else retries == 2
    assert cached.unwrap(blob, kms.key) == KEY
    proxy.mode = "pass"
    if fault != "down":
        proxy.next = [FAULTS[fault]] * 2
    assert uncached.unwrap(blob, kms.key) == KEY
    assert uncached.metrics()["retries"] - retries == (0 if fault == "down" else 2)
    assert raw.unwrap(blob, kms.key) == KEY


@on(*NETWORKED)
def test_slow(kms: Subject) -> None:
    client, proxy = kms.client(raw=False, **UNCACHED), kms.backend.proxy
    assert proxy is not None
    blob = client.wrap(KEY, kms.key)
    proxy.mode = "slow"
    started = time.monotonic()
    assert client.unwrap(blob, kms.key) == KEY
    assert time.monotonic() - started >= 0.2
    assert client.metrics()["retries"] == 0


@on(*NETWORKED)
def test_no_answer(kms: Subject) -> None:
    limit = {"encryption.kms.call-timeout-ms": "1500"}
    client, proxy = kms.client(**limit), kms.backend.proxy
    assert proxy is not None
    blob = client.wrap(KEY, kms.key)
    proxy.mode = "hang"
    started = time.monotonic()
    kms.refused(KmsUnavailableError, lambda: client.unwrap(blob, kms.key), kms.key, "1500 ms")
    assert 1.5 <= time.monotonic() - started < 10


LIBRARIES = {"aws": "software/amazon/", "gcp": "com/google/auth/", "azure": "com/azure/"}


@on(*LIBRARIES)
def test_without_the_clouds_library(kms: Subject, bare: Jvm) -> None:
    with pytest.raises(ConfigurationError, match="KmsClient needs a library") as raised:
        bare.client(kms.properties)
    assert LIBRARIES[kms.backend.kind] in raised.value.message
    assert type(kms.reader).packages[0] in raised.value.hint


def test_no_secret_is_in_the_log(subjects: dict[str, Subject]) -> None:
    """After all that went wrong above."""
    log = next(iter(subjects.values())).jvm.log
    text = Path(log).read_text()
    assert text
    for found in subjects.values():
        assert not [secret for secret in found.backend.secrets if secret in text]
