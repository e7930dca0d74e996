"""What HSMs do wrong, and what the client makes of it: SoftHSM2 behind a library that fails (hsm_faults.c)."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from doubles.faulty_hsm import FaultyHsm
from harness.files import secret_file
from harness.jvm import ENVIRONMENT, Client, Jvm, start_jvm
from harness.refused import refused as must_be_refused
from servers.softhsm import PIN, SoftHsm, away, client_properties

from pyspark_iceberg_crypto import (
    IcebergCryptoError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)

KEK = b"0123456789abcdef"

Make = Callable[..., Client]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pkcs11-faults")


@pytest.fixture(scope="module")
def hsm(folder: Path) -> SoftHsm:
    made = SoftHsm(folder / "softhsm2.conf")
    made.make_token("faulty")
    made.make_key("faulty", "k1")
    return made


@pytest.fixture(scope="module")
def jvm(folder: Path, hsm: SoftHsm) -> Iterator[Jvm]:
    """One of its own: SoftHSM in it is restarted, and loses its tokens."""
    started = start_jvm(folder / "log", {"SOFTHSM2_CONF": str(hsm.configuration)})
    yield started
    started.stop()


@pytest.fixture(scope="module")
def broken(hsm: SoftHsm, folder: Path) -> FaultyHsm:
    return FaultyHsm(folder / "faulty", hsm.library)


@pytest.fixture
def faulty(broken: FaultyHsm) -> Iterator[FaultyHsm]:
    broken.pass_all()
    broken.forget()
    yield broken
    broken.pass_all()


@pytest.fixture
def make(jvm: Jvm, faulty: FaultyHsm) -> Make:
    """Makes a client of the faulty library; keyword arguments are properties, None takes one away."""

    def client(*, raw: bool = True, **changes: object) -> Client:
        given = {"library": faulty.library, "token_label": "faulty", **changes}
        return jvm.client(client_properties(**given), raw=raw)

    return client


def refused(
    kind: type[IcebergCryptoError], call: Callable[[], Any], *words: str
) -> IcebergCryptoError:
    wrong = ENVIRONMENT["ICEBERG_CRYPTO_TEST_WRONG"]
    return must_be_refused(kind, call, *words, secrets=[PIN, wrong])


def test_a_wrong_pin_is_tried_once(make: Make, faulty: FaultyHsm, folder: Path) -> None:
    pin = secret_file(folder / "changing-pin", "999999")
    for _ in range(3):
        client = make(raw=False, pin_env=None, pin_file=pin)
        error = refused(LoginFailedError, lambda c=client: c.wrap(KEK, "k1"), "'faulty'", "pin")
        assert "999999" not in str(error)
    assert faulty.calls().count("C_Login") == 1, "neither retries nor new clients try it again"
    pin.write_text(PIN)
    assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK, "the right pin is taken at once"
    assert faulty.calls().count("C_Login") == 2


def test_a_client_with_a_wrong_pin_does_not_profit_from_the_login(
    make: Make, faulty: FaultyHsm
) -> None:
    good = make()
    wrapped = good.wrap(KEK, "k1")
    bad = make(pin_env="ICEBERG_CRYPTO_TEST_WRONG")
    for _ in range(2):
        refused(LoginFailedError, lambda: bad.unwrap(wrapped, "k1"), "token 'faulty'", "pin")
    assert good.unwrap(wrapped, "k1") == KEK, "the one with the right pin goes on"


def test_clients_share_one_login(make: Make, faulty: FaultyHsm) -> None:
    make().wrap(KEK, "k1")
    faulty.forget()
    for _ in range(3):
        client = make()
        assert client.travelled().unwrap(client.wrap(KEK, "k1"), "k1") == KEK
        client.close()
    assert "C_Login" not in faulty.calls()


@pytest.fixture
def log_out(jvm: Jvm, hsm: SoftHsm, faulty: FaultyHsm) -> Callable[[], None]:
    """Another user of the token in the same process logs out: a login is the process's, not a client's."""

    def do() -> None:
        factory = jvm.view.java.security.Security.getProvider("SunPKCS11")
        config = f"library = {faulty.library}\nslot = {hsm.slots['faulty']}\n"
        factory.configure(f"--name = elsewhere\n{config}").logout()

    return do


def test_a_logout_elsewhere_is_recovered(make: Make, log_out: Callable[[], None]) -> None:
    client = make(raw=False)
    wrapped = client.wrap(KEK, "k1")
    client.close()  # forgets what it has in its cache
    client = make(raw=False)
    log_out()
    assert client.unwrap(wrapped, "k1") == KEK
    log_out()
    assert client.wrap(KEK, "k1") != wrapped
    log_out()
    refused(KeyNotFoundError, lambda: client.wrap(KEK, "nope"), "'nope'", "It has: k1")
    assert client.metrics()["retries"] == 0


def test_a_restart_of_the_hsm_is_recovered_by_one_login(make: Make, faulty: FaultyHsm) -> None:
    client = make()
    wrapped = client.wrap(KEK, "k1")
    faulty.forget()
    faulty.set("restart")
    with ThreadPoolExecutor(8) as threads:
        calls = [threads.submit(client.unwrap, wrapped, "k1") for _ in range(40)]
        assert [call.result() for call in calls] == [KEK] * 40
    assert faulty.mode() == "pass", "it was restarted"
    assert faulty.calls().count("C_Login") == 1


@pytest.mark.parametrize(
    "answer",
    [0x05, 0x06, 0x30, 0x32, 0x60, 0x82, 0xB0, 0xB3, 0xE0, 0x101, 0x190, 0x80000001],
    ids=hex,
)
def test_what_one_new_session_mends(make: Make, faulty: FaultyHsm, answer: int) -> None:
    client = make()
    wrapped = client.wrap(KEK, "k1")
    faulty.set(f"answer {answer:#x} 1")
    assert client.unwrap(wrapped, "k1") == KEK
    faulty.set(f"answer {answer:#x} 1")
    assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK
    assert faulty.mode() == "pass"


def test_a_token_that_shows_no_key_is_logged_in_to_again(
    make: Make, faulty: FaultyHsm, hsm: SoftHsm
) -> None:
    client = make()
    client.wrap(KEK, "k1")
    hsm.make_key("faulty", "late")
    faulty.forget()
    faulty.set("lapse")
    client.wrap(KEK, "late")
    assert faulty.calls().count("C_Login") == 1
    faulty.set("lapse")
    unknown = b"ICWK\x01\x06pkcs11\x00\x00\x00\x01" + bytes(44)
    refused(KeyNotFoundError, lambda: client.unwrap(unknown, "nope"), "'nope'", "It has: k1")
    assert faulty.calls().count("C_Login") == 2


def test_an_hsm_that_is_down(make: Make, faulty: FaultyHsm) -> None:
    client = make(raw=False)
    wrapped = client.wrap(KEK, "k1")
    faulty.set("answer 0x30")
    for call in (lambda: client.wrap(KEK, "k1"), lambda: make().unwrap(wrapped, "k1")):
        refused(KmsUnavailableError, call, "'k1'", "token 'faulty'", "CKR_DEVICE_ERROR")
    assert client.unwrap(wrapped, "k1") == KEK, "from the cache"
    faulty.pass_all()
    assert make().unwrap(wrapped, "k1") == KEK


def test_an_hsm_that_is_overloaded(make: Make, faulty: FaultyHsm) -> None:
    client = make(raw=False)
    client.wrap(KEK, "k1")
    faulty.set("answer 0xb1 2")  # CKR_SESSION_COUNT
    client.wrap(KEK, "k1")
    assert client.metrics()["retries"] == 2
    faulty.set("answer 0xb1 1")
    raw = make()
    refused(KmsUnavailableError, lambda: raw.wrap(KEK, "k1"), "CKR_SESSION_COUNT", "'k1'")


def test_a_slow_hsm(make: Make, faulty: FaultyHsm) -> None:
    client = make()
    wrapped = client.wrap(KEK, "k1")
    faulty.set("slow 200")
    started = time.monotonic()
    assert client.unwrap(wrapped, "k1") == KEK
    assert time.monotonic() - started >= 0.2


def test_an_hsm_that_hangs(jvm: Jvm, faulty: FaultyHsm) -> None:
    properties = {
        **client_properties(library=faulty.library, token_label="faulty"),
        "encryption.kms.call-timeout-ms": "300",
        "encryption.kms.retry.max-attempts": "1",
    }
    client = jvm.client(properties)
    client.check("k1")
    faulty.set("slow 2000")
    started = time.monotonic()
    refused(KmsUnavailableError, lambda: client.wrap(KEK, "k1"), "'k1'", "token 'faulty'")
    assert time.monotonic() - started < 1.5
    faulty.pass_all()
    assert client.unwrap(client.wrap(KEK, "k1"), "k1") == KEK, "who hangs holds up nobody else"


def test_a_library_that_shows_no_slots(
    make: Make, faulty: FaultyHsm, log_out: Callable[[], None]
) -> None:
    """As those of network HSMs do that are not reached: that may pass."""
    client = make()
    wrapped = client.wrap(KEK, "k1")
    log_out()
    faulty.set("no-slots")
    refused(KmsUnavailableError, lambda: client.unwrap(wrapped, "k1"), "'k1'", "the token is gone")
    new = make(token_label="unknown")
    refused(KmsUnavailableError, lambda: new.unwrap(wrapped, "k1"), "'k1'", "no token at all")
    faulty.pass_all()
    assert client.unwrap(wrapped, "k1") == KEK


def test_the_token_goes_and_comes_back(make: Make, faulty: FaultyHsm, hsm: SoftHsm) -> None:
    client = make()
    wrapped = client.wrap(KEK, "k1")
    with away(hsm.tokens):
        for call in (lambda: client.wrap(KEK, "k1"), lambda: client.unwrap(wrapped, "k1")):
            refused(KmsUnavailableError, call, "'k1'", "token 'faulty'")
    # SoftHSM itself has to be restarted to see a token again.
    faulty.set("restart")
    assert client.unwrap(wrapped, "k1") == KEK


def test_a_locked_pin(make: Make, faulty: FaultyHsm, log_out: Callable[[], None]) -> None:
    client = make()
    client.wrap(KEK, "k1")
    log_out()
    for answer, word in ((0xA4, "locked"), (0xA3, "expired"), (0x102, "no pin yet")):
        # The first call finds itself logged out, the next ones are those of the new login.
        faulty.set(f"login {answer:#x}")
        refused(LoginFailedError, lambda: client.wrap(KEK, "k1"), "token 'faulty'", word)
    faulty.pass_all()
    client.wrap(KEK, "k1")


@pytest.mark.parametrize(("fault", "word"), [("own-nonce", "nonce"), ("no-gcm", "CKM_AES_GCM")])
def test_a_token_that_cannot_wrap(
    make: Make, faulty: FaultyHsm, log_out: Callable[[], None], fault: str, word: str
) -> None:
    """It makes its own nonces, or has no AES-GCM."""
    client = make()
    client.wrap(KEK, "k1")
    log_out()
    faulty.set(fault)
    refused(NotSupportedError, lambda: client.wrap(KEK, "k1"), "'k1'", word)
    log_out()
    faulty.pass_all()
    client.wrap(KEK, "k1")
