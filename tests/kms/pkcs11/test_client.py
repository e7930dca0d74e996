"""PKCS#11 against SoftHSM2, a real token in software. See test_pkcs11_faults.py for what HSMs do wrong."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from harness.files import secret_file
from harness.in_python import in_python
from harness.jvm import Client, Jvm
from harness.refused import refused as must_be_refused
from servers.softhsm import PIN, SoftHsm, client_properties

from pyspark_iceberg_crypto import (
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import from_properties

KEK = b"0123456789abcdef"
READABLE = bytes(range(32))
PREFIX = "encryption.kms.pkcs11"
HEADER = len(b"ICWK") + 2 + len("pkcs11") + 4

Make = Callable[..., Client]


@pytest.fixture(scope="module")
def hsm(jvm: Jvm, folder: Path) -> SoftHsm:
    """Two tokens of our keys, one of keys that cannot be used, and others for one test each."""
    made = SoftHsm(Path(jvm.environment["SOFTHSM2_CONF"]))
    for token in ("sales", "other", "odd", "twice", "empty", "turning"):
        made.make_token(token)
    for token in ("sales", "other", "odd", "turning"):
        made.make_key(token, "k1")
    for name, kind in (("k-128", "AES:16"), ("k-192", "AES:24")):
        made.make_key("sales", name, kind=kind)
    known = folder / "readable"
    known.write_bytes(READABLE)
    imported = ("--type", "secrkey", "--key-type", "AES:32", "--extractable")
    made.tool("odd", "--write-object", str(known), "--label", "readable", *imported)
    made.make_key("odd", "mac", kind="GENERIC:32")
    made.make_key("twice", "k1")
    made.make_key("twice", "k1")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pkcs11")


@pytest.fixture(scope="module")
def make(jvm: Jvm, hsm: SoftHsm) -> Make:
    """Makes a client; keyword arguments are properties, None takes one away."""

    def client(*, raw: bool = True, **changes: object) -> Client:
        given = {"library": hsm.library, "token_label": "sales", **changes}
        return jvm.client(client_properties(**given), raw=raw)

    return client


@pytest.fixture(scope="module", autouse=True)
def turning(make: Make, hsm: SoftHsm) -> Iterator[tuple[Client, bytes, Future[bytes]]]:
    """A client, what it wrapped before its key was rotated, and what it wraps once it sees the new version.

    That takes up to 10 s, in which the other tests run; nobody else uses this token.
    """
    client = make(token_label="turning")
    first = client.wrap(KEK, "k1")
    hsm.make_key("turning", "k1.v2")
    started, over = time.monotonic(), Event()

    def wrap_until_it_is_seen() -> bytes:
        while version(latest := client.wrap(KEK, "k1")) == 1 and not over.wait(0.5):
            assert time.monotonic() - started < 12, "labels are looked at every 10 s"
        return latest

    with ThreadPoolExecutor(1) as pool:
        yield client, first, pool.submit(wrap_until_it_is_seen)
        over.set()


def version(blob: bytes) -> int:
    return int.from_bytes(blob[HEADER - 4 : HEADER], "big")


def refused(kind: type[IcebergCryptoError], call: Callable[[], Any], *words: str) -> None:
    must_be_refused(kind, call, *words, secrets=[PIN])


@pytest.mark.parametrize(
    ("key_id", "length"), [("k1", 1), ("k-128", 16), ("k-192", 24), ("k1", 32), ("k1", 100)]
)
def test_keys_of_any_length(make: Make, key_id: str, length: int) -> None:
    key = bytes(range(length))
    wrapped = make().wrap(key, key_id)
    assert wrapped.startswith(b"ICWK\x01\x06pkcs11\x00\x00\x00\x01")
    assert len(wrapped) == HEADER + 12 + length + 16
    assert make().unwrap(wrapped, key_id) == key


def test_a_token_by_its_slot(make: Make, hsm: SoftHsm) -> None:
    wrapped = make().wrap(KEK, "k1")
    for slot in (hsm.slots["sales"], hex(hsm.slots["sales"])):
        assert make(token_label=None, slot=slot).unwrap(wrapped, "k1") == KEK


def test_a_blob_of_another_token_with_a_key_of_that_name(make: Make) -> None:
    wrapped = make().wrap(KEK, "k1")
    other = make(token_label="other")
    refused(BadWrappedKeyError, lambda: other.unwrap(wrapped, "k1"), "'k1'", "'other'")
    assert make().unwrap(wrapped, "k1") == KEK


def test_a_key_that_is_missing(make: Make) -> None:
    for call in (
        lambda: make().wrap(KEK, "nope"),
        lambda: make().unwrap(b"ICWK\x01\x06pkcs11\x00\x00\x00\x01" + bytes(44), "nope"),
    ):
        refused(KeyNotFoundError, call, "'nope'", "token 'sales'", "k-192, k1")
    empty = make(token_label="empty")
    refused(KeyNotFoundError, lambda: empty.wrap(KEK, "k1"), "'k1'", "no key at all")


def test_a_key_that_may_not_decrypt(make: Make, jvm: Jvm, hsm: SoftHsm) -> None:
    """What comes closest to a disabled key: CKA_ENCRYPT and CKA_DECRYPT false."""
    make(token_label="odd").wrap(KEK, "k1")  # logs the process in
    _make_disabled_key(jvm, hsm, "odd", "disabled")
    client = make(token_label="odd")
    refused(KeyDisabledError, lambda: client.wrap(KEK, "disabled"), "'disabled'", "token 'odd'")
    blob = b"ICWK\x01\x06pkcs11\x00\x00\x00\x01" + bytes(44)
    refused(KeyDisabledError, lambda: client.unwrap(blob, "disabled"), "'disabled'")


def _make_disabled_key(jvm: Jvm, hsm: SoftHsm, token: str, label: str) -> None:
    """pkcs11-tool has no option for it; SunPKCS11 has."""
    java = jvm.view.java
    attributes = "CKA_ENCRYPT = false\nCKA_DECRYPT = false\nCKA_SENSITIVE = true\n"
    provider = java.security.Security.getProvider("SunPKCS11").configure(
        f"--name = t\nlibrary = {hsm.library}\nslot = {hsm.slots[token]}\n"
        f"attributes(*, CKO_SECRET_KEY, CKK_AES) = {{\n{attributes}}}\n"
    )
    store = java.security.KeyStore.getInstance("PKCS11", provider)
    store.load(None, None)
    maker = jvm.view.javax.crypto.KeyGenerator.getInstance("AES", provider)
    maker.init(256)
    store.setKeyEntry(label, maker.generateKey(), None, None)


def test_a_key_that_the_token_gives_away(
    make: Make, hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wraps nothing, and unwraps what it has wrapped: tables that have it must be read to be rotated."""
    java = make(token_label="odd")
    in_python(hsm.environment | {"ICEBERG_CRYPTO_TEST_PIN": PIN}, monkeypatch)
    properties = client_properties(library=hsm.library, token_label="odd")
    python = from_properties(properties).for_table(None)
    header = b"ICWK\x01\x06pkcs11\x00\x00\x00\x01"
    sealed = AESGCM(READABLE).encrypt(bytes(12), KEK, header + b"readable")
    blob = header + bytes(12) + sealed
    for _ in range(2):
        for unwrap in (java.unwrap, python.unwrap_key):
            assert unwrap(blob, "readable") == KEK
        for wrap in (java.wrap, python.wrap_key):
            readable = partial(wrap, KEK, "readable")
            refused(ConfigurationError, readable, "'readable'", "extractable")


def test_a_key_of_another_kind(make: Make) -> None:
    client = make(token_label="odd")
    refused(ConfigurationError, lambda: client.wrap(KEK, "mac"), "'mac'", "not an AES")


def test_two_keys_of_one_label(make: Make) -> None:
    client = make(token_label="twice")
    refused(ConfigurationError, lambda: client.wrap(KEK, "k1"), "token 'twice'", "the same label")


def test_the_name_of_a_version_is_no_key_id(make: Make) -> None:
    client = make()
    refused(ConfigurationError, lambda: client.wrap(KEK, "k1.v2"), "'k1.v2'", "Use 'k1'")


def test_a_version_that_another_process_made_is_looked_for(make: Make, hsm: SoftHsm) -> None:
    hsm.make_key("sales", "shared")
    client = make()
    body = client.wrap(KEK, "shared")[HEADER:]
    third = b"ICWK\x01\x06pkcs11\x00\x00\x00\x03" + body
    refused(
        KeyNotFoundError, lambda: client.unwrap(third, "shared"), "not its version 3", "'shared"
    )
    hsm.make_key("sales", "shared.v3")  # found now, and not the key that wrapped this
    refused(BadWrappedKeyError, lambda: client.unwrap(third, "shared"), "version 3 of key 'shared'")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"library": None}, (f"{PREFIX}.library is missing",)),
        ({"library": "lib.so"}, (f"{PREFIX}.library", "'lib.so'", "absolute")),
        ({"library": '/a"b.so'}, (f"{PREFIX}.library",)),
        ({"library": "/a\nshowInfo=true"}, (f"{PREFIX}.library",)),
        ({"token_label": None}, (f"{PREFIX}.token-label", f"{PREFIX}.slot", "None")),
        ({"slot": 1}, (f"{PREFIX}.token-label", f"{PREFIX}.slot", "Both")),
        ({"token_label": " "}, (f"{PREFIX}.token-label is empty",)),
        ({"token_label": None, "slot": "first"}, (f"{PREFIX}.slot", "'first'")),
        ({"token_label": None, "slot": -1}, (f"{PREFIX}.slot", "'-1'")),
        ({"pin_env": None}, (f"{PREFIX}.pin-env", f"{PREFIX}.pin-file", "Neither")),
        ({"pin_file": "/p"}, (f"{PREFIX}.pin-env", f"{PREFIX}.pin-file", "both")),
        ({"pin": PIN}, (f"{PREFIX}.pin ", "pin-env", "pin-file", "show a secret")),
    ],
    ids=str,
)
def test_bad_properties(make: Make, changes: dict[str, Any], words: tuple[str, ...]) -> None:
    refused(ConfigurationError, lambda: make(**changes), *words)


def test_what_is_not_there(make: Make, hsm: SoftHsm, folder: Path) -> None:
    garbage = folder / "garbage.so"
    garbage.write_text("not a library")
    for changes, words in (
        ({"library": "/no/such.so"}, ("/no/such.so", "does not exist", f"{PREFIX}.library")),
        ({"library": garbage}, (str(garbage), "too short", f"{PREFIX}.library")),
        ({"token_label": "nope"}, ("token 'nope'", "no token has", "sales", "'k1'")),
        ({"token_label": None, "slot": 4711}, ("slot 4711", "CKR_SLOT_ID_INVALID")),
        ({"pin_env": "NO_SUCH_VARIABLE"}, ("NO_SUCH_VARIABLE", f"{PREFIX}.pin-env")),
        ({"pin_env": None, "pin_file": folder / "none"}, (str(folder / "none"), "does not exist")),
    ):
        client = make(**changes)
        refused(ConfigurationError, lambda client=client: client.wrap(KEK, "k1"), *words)


def test_a_slot_without_an_initialized_token(make: Make, hsm: SoftHsm) -> None:
    client = make(token_label=None, slot=hsm.free_slot())
    refused(ConfigurationError, lambda: client.wrap(KEK, "k1"), "not been initialized")


def test_a_pin_file(make: Make, folder: Path) -> None:
    file = secret_file(folder / "pin", PIN + "\n")
    client = make(pin_env=None, pin_file=file)
    wrapped = client.wrap(KEK, "k1")
    file.chmod(0o644)
    other = make(pin_env=None, pin_file=file)
    refused(ConfigurationError, lambda: other.unwrap(wrapped, "k1"), f"chmod 600 {file}")
    assert client.unwrap(wrapped, "k1") == KEK, "who is logged in stays so"


@pytest.mark.nightly
def test_a_java_without_pkcs11(hsm: SoftHsm, start: Callable[..., Jvm]) -> None:
    java = start(options=["--limit-modules", "java.se,jdk.unsupported"])
    client = java.client(client_properties(library=hsm.library, token_label="sales"))
    refused(NotSupportedError, lambda: client.wrap(KEK, "k1"), "jdk.crypto.cryptoki")


def test_standard_output_is_left_as_it_was(make: Make, jvm: Jvm, hsm: SoftHsm) -> None:
    """A label is found in what SunPKCS11 prints."""
    system = jvm.view.java.lang.System
    before = system.identityHashCode(system.out)
    refused(ConfigurationError, lambda: make(token_label="nowhere").wrap(KEK, "k1"), "nowhere")
    assert system.identityHashCode(system.out) == before
    system.out.println("still printing")
    system.out.flush()
    deadline = time.monotonic() + 10  # a thread of Py4J's writes the log
    while "still printing" not in (said := jvm.log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "Token info" not in said
    assert "Slot" not in said
    assert PIN not in said


def test_rotation(turning: tuple[Client, bytes, Future[bytes]]) -> None:
    """At the end, when it need not be waited for any more."""
    client, first, seen = turning
    latest = seen.result()
    assert version(first) == 1
    assert version(latest) == 2
    assert client.unwrap(first, "k1") == client.unwrap(latest, "k1") == KEK
