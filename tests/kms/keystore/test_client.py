"""The keystore client in a JVM, on files that the Python helper makes, rotates and replaces under it.

Files of Java's own are in KeystoreKmsClientTest.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness.files import secret_file
from harness.jvm import ENVIRONMENT, Client, Jvm
from harness.keystore import few_iterations
from harness.refused import refused as must_be_refused

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    Keystore,
)

KEK = b"0123456789abcdef"
PREFIX = "encryption.kms.keystore"
VARIABLE = "ICEBERG_CRYPTO_TEST_PASSWORD"
PASSWORD = ENVIRONMENT[VARIABLE]
HEADER = len(b"ICWK") + 2 + len("keystore") + 4


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    few_iterations(monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keystore with k1 and k2: each run of keytool takes a second, so it is made once."""
    path = tmp_path_factory.mktemp("keystore") / "keys.p12"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, PASSWORD)
        few_iterations(patch)
        Keystore.create(path, ["k1", "k2"], password_env=VARIABLE)
    return path


@pytest.fixture
def store(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> Keystore:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    path = secret_file(tmp_path / "keys.p12", finished.read_bytes())
    return Keystore(path, password_env=VARIABLE)


@pytest.fixture
def client(jvm: Jvm, store: Keystore) -> Client:
    return jvm.client(store.properties(), raw=True)


def version(blob: bytes) -> int:
    return int.from_bytes(blob[HEADER - 4 : HEADER], "big")


def refused(kind: type[IcebergCryptoError], call: Callable[[], Any], *words: str) -> None:
    must_be_refused(kind, call, *words, secrets=[PASSWORD])


@pytest.mark.nightly
def test_a_long_password_and_all_iterations(jvm: Jvm, tmp_path: Path) -> None:
    """As a user makes the file, and how long a JVM needs to open it."""
    secret = secret_file(
        tmp_path / "password",
        "64 characters of hex are what programs make for a password" * 20 + "\n",
    )
    store = Keystore.create(tmp_path / "keys.p12", ["k1"], password_file=secret)
    start = time.monotonic()
    client = jvm.client(store.properties(), raw=True)
    assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK
    opened = time.monotonic() - start
    start = time.monotonic()
    client.wrap(KEK, "k1")
    assert time.monotonic() - start < opened / 2, (
        "the password is hashed once a file, not with each call"
    )


@pytest.mark.parametrize("password", ["pässwörter", "tabs\tin it"])
def test_a_password_that_java_does_not_take(
    jvm: Jvm, store: Keystore, tmp_path: Path, password: str
) -> None:
    """Not "the file is damaged"."""
    secret = secret_file(tmp_path / "password", password)
    properties = Keystore(store.path, password_file=secret).properties()
    must_be_refused(
        ConfigurationError,
        lambda: jvm.client(properties),
        str(secret),
        "characters that no PKCS12 keystore of Java accepts",
        secrets=[password],
    )


@pytest.mark.nightly
def test_readers_never_see_half_a_file(jvm: Jvm, store: Keystore) -> None:
    """Each wrap looks at the file, which is replaced all the while."""
    client = jvm.client(store.properties(), raw=True)
    done = False

    def use() -> int:
        rounds = 0
        while not done:
            assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK
            fresh = jvm.client(store.properties(), raw=True)
            assert fresh.unwrap(client.wrap(KEK, "k2"), "k2") == KEK
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as threads:
        users = [threads.submit(use) for _ in range(2)]
        try:
            for _ in range(3):
                store.rotate_key("k1")
        finally:
            done = True
        assert all(user.result() > 3 for user in users)
    assert version(client.wrap(KEK, "k1")) == 4


def test_a_keystore_with_another_key_of_that_name(jvm: Jvm, client: Client, tmp_path: Path) -> None:
    other = Keystore.create(tmp_path / "other.p12", ["k1"], password_env=VARIABLE)
    wrapped = jvm.client(other.properties(), raw=True).wrap(KEK, "k1")
    refused(BadWrappedKeyError, lambda: client.unwrap(wrapped, "k1"), "'k1'", "keys.p12")
    assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK


def test_a_file_that_this_user_may_not_read(jvm: Jvm, store: Keystore) -> None:
    """Root may read all: for root there is no such file, and the client opens it."""
    Path(store.path).chmod(0o000)
    if os.geteuid() == 0:
        jvm.client(store.properties()).check("k1")
    else:
        refused(AccessDeniedError, lambda: jvm.client(store.properties()), "may not be read")
