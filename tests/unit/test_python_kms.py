"""Keys that are wrapped and unwrapped in Python: the cache in front of a KMS, its settings, and the form of keys."""

import base64
import json
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from doubles.faults import FaultProxy
from harness.files import secret_file
from harness.forks import in_a_fork

from pyspark_iceberg_crypto import (
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import (
    BY_TYPE,
    AwsKms,
    AzureKeyVault,
    CachedKms,
    GcpKms,
    HadoopKms,
    KeyManagementClient,
    Keystore,
    KmsCalls,
    Retry,
    Vault,
    from_properties,
)
from pyspark_iceberg_crypto.kms._blob import WrappedKey, decoded, parse
from pyspark_iceberg_crypto.kms.gcp._keys import GcpKeys, crc32c
from pyspark_iceberg_crypto.kms.hadoop._errors import Refused
from pyspark_iceberg_crypto.kms.keystore import _pkcs12
from pyspark_iceberg_crypto.kms.pkcs11._keys import Pkcs11Keys, Place, _Token

VECTORS = Path(__file__).parents[1] / "vectors"
KEK = bytes(range(16))
QUICK = Retry(max_attempts=3, initial_delay_ms=1, max_delay_ms=2)


class OwnKms:
    """A user's own client, which is asked for nothing that is not said here."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.table: str | None = None

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return self.next(b"wrapped " + key)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        return self.next(wrapped_key.removeprefix(b"wrapped "))

    def next(self, otherwise: bytes) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else otherwise
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_cache_answers_and_forgets() -> None:
    own = OwnKms()
    kms = CachedKms(own, retry=QUICK)
    assert isinstance(kms, KeyManagementClient)
    wrapped = kms.wrap_key(KEK, "k")
    assert kms.unwrap_key(wrapped, "k") == KEK
    assert own.asked == 1, "what was just wrapped is kept"
    kms.forget(wrapped, "k")
    assert [kms.unwrap_key(wrapped, "k"), kms.unwrap_key(wrapped, "k")] == [KEK, KEK]
    assert own.asked == 2
    assert kms.unwrap_key(wrapped, "other") == KEK, "the master key's id counts"
    assert kms.for_table("t").unwrap_key(wrapped, "k") == KEK, "the table counts"
    assert kms.calls() == KmsCalls(wrap_calls=1, unwrap_calls=3, hits=2, misses=3)
    assert KEK.hex() not in repr(kms) + repr(vars(kms)) + str(kms)


def test_a_key_is_kept_for_its_time() -> None:
    own = OwnKms()
    kms = CachedKms(own, ttl_ms=50)
    kms.unwrap_key(b"a", "k")
    entry = next(iter(kms._state.cache._entries.values()))
    held = entry.loaded.result()
    time.sleep(0.06)
    kms.unwrap_key(b"a", "k")
    assert own.asked == 2
    assert held == b"\0", "its bytes are overwritten"
    off = CachedKms(own, ttl_ms=0)
    assert [off.unwrap_key(b"a", "k"), off.unwrap_key(b"a", "k"), off.keeps_keys] == [
        b"a",
        b"a",
        False,
    ]
    assert own.asked == 4


def test_a_key_that_comes_after_the_cache_was_closed_is_overwritten() -> None:
    entries = []

    class Closed(OwnKms):
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            entries.extend(kms._state.cache._entries.values())
            kms.close()
            return KEK

    kms = CachedKms(Closed())
    assert kms.unwrap_key(b"a", "k") == KEK
    assert [bytes(entry.held) for entry in entries] == [bytes(len(KEK))]


def test_threads_that_wait_for_one_key_share_a_call() -> None:
    entered, go = threading.Event(), threading.Event()

    class Slow(OwnKms):
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            entered.set()
            assert go.wait(10)
            return super().unwrap_key(wrapped_key, wrapping_key_id)

    own = Slow()
    kms = CachedKms(own)
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(kms.unwrap_key, b"a", "k") for _ in range(8)]
        assert entered.wait(10)
        go.set()
        assert [one.result(10) for one in found] == [b"a"] * 8
    assert own.asked == 1


def test_who_waits_gets_the_error_and_asks_again_after_an_interrupt() -> None:
    kms = CachedKms(OwnKms(KeyNotFoundError("no key", "make it")))
    with pytest.raises(KeyNotFoundError):
        kms.unwrap_key(b"a", "k")
    assert kms.unwrap_key(b"a", "k") == b"a", "an error is not kept"

    class Interrupted(OwnKms):
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            raise KeyboardInterrupt

    interrupted = CachedKms(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        interrupted.unwrap_key(b"a", "k")
    assert not interrupted._state.cache._entries


def test_only_an_unavailable_kms_is_asked_again() -> None:
    down = KmsUnavailableError("down", "wait")
    own = OwnKms(down, down)
    kms = CachedKms(own, retry=QUICK)
    assert kms.unwrap_key(b"a", "k") == b"a"
    assert kms.calls() == KmsCalls(unwrap_calls=3, misses=1, errors=2, retries=2)
    own.answers = [down] * 3
    with pytest.raises(KmsUnavailableError, match="down"):
        kms.unwrap_key(b"b", "k")
    assert own.asked == 6
    own.answers = [KeyNotFoundError("no key", "make it")]
    with pytest.raises(KeyNotFoundError):
        kms.unwrap_key(b"b", "k")
    assert own.asked == 7
    slow = CachedKms(OwnKms(*[down] * 9), retry=Retry(9, 400, 400, 300))
    with pytest.raises(KmsUnavailableError):
        slow.unwrap_key(b"a", "k")
    assert slow.calls().unwrap_calls == 1, "the next wait would not end in time"


def test_a_kms_that_is_called_too_often_is_asked_until_the_time_is_over() -> None:
    busy = KmsUnavailableError("busy", "wait", throttled=True)
    own = OwnKms(*[busy] * 20)
    assert CachedKms(own, retry=QUICK).unwrap_key(b"a", "k") == b"a"
    assert own.asked == 21
    short = CachedKms(OwnKms(*[busy] * 999), retry=Retry(3, 1, 2, timeout_ms=50))
    with pytest.raises(KmsUnavailableError, match="busy"):
        short.unwrap_key(b"a", "k")
    assert short.calls().unwrap_calls > 9
    once = CachedKms(OwnKms(busy), retry=Retry(max_attempts=1))
    with pytest.raises(KmsUnavailableError, match="busy"):
        once.unwrap_key(b"a", "k")


IN_VAULT = WrappedKey("vault", 1, b"vault:v1:AAAA").encode()
TOKEN = {"token_env": "VAULTS_SECRET"}
APP_ROLE = {"role_id": "r", "secret_id_env": "VAULTS_SECRET"}


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """A double, which answers what its mode says."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("VAULTS_SECRET", "only-for-tests")
    double = FaultProxy(target_port=1).start()
    yield double
    double.stop()


@pytest.mark.parametrize("login", [TOKEN, APP_ROLE], ids=["key", "login"])
def test_a_vault_that_throttles(vault: FaultProxy, login: dict[str, str]) -> None:
    vault.mode = ("status", 429, {}, '{"errors":["slow down"]}')
    with pytest.raises(KmsUnavailableError, match="'k'.*slow down") as raised:
        Vault(vault.url, **login).for_table(None).unwrap_key(IN_VAULT, "k")
    assert raised.value.throttled


def test_a_vault_that_lags_behind_a_rotation_is_asked_again(vault: FaultProxy) -> None:
    vault.mode = ("status", 400, {}, '{"errors":["invalid ciphertext: version is too new"]}')
    kms = CachedKms(Vault(vault.url, **TOKEN), retry=QUICK)
    with pytest.raises(KmsUnavailableError, match="does not have the version of key 'k'"):
        kms.unwrap_key(IN_VAULT, "k")
    assert kms.calls().retries == 2
    key = base64.b64encode(KEK).decode()
    vault.next = [vault.mode, ("status", 200, {}, json.dumps({"data": {"plaintext": key}}))]
    assert kms.unwrap_key(IN_VAULT, "k") == KEK


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ConnectionResetError("reset"), KmsUnavailableError, "'k'"),
        (
            ValueError("what"),
            IcebergCryptoError,
            "OwnKms could not unwrap with key 'k': ValueError: what",
        ),
        (ValueError("Invalid header value b'secret'"), LoginFailedError, "valid header value"),
    ],
)
def test_errors_of_ones_own_client_are_typed(
    error: Exception, kind: type[IcebergCryptoError], words: str
) -> None:
    with pytest.raises(IcebergCryptoError) as raised:
        CachedKms(OwnKms(*[error] * 9), retry=QUICK).unwrap_key(b"a", "k")
    assert type(raised.value) is kind
    assert words in raised.value.message
    assert "secret" not in str(raised.value)
    assert raised.value.hint


def test_an_answer_that_is_no_bytes_is_an_error_without_it() -> None:
    kms = CachedKms(OwnKms("a secret text"))
    with pytest.raises(IcebergCryptoError, match="answered str to unwrap") as raised:
        kms.unwrap_key(b"a", "k")
    assert "secret" not in str(raised.value)
    for no_client in (None, OwnKms, "vault"):
        with pytest.raises(ConfigurationError, match="kms must be"):
            CachedKms(no_client)  # type: ignore[arg-type]


def test_a_pickled_client_has_no_key_and_works() -> None:
    kms = CachedKms(OwnKms(), ttl_ms=7, retry=QUICK).for_table("t")
    wrapped = kms.wrap_key(b"secret-of-sixteen", "k")
    sent = pickle.dumps(kms)
    assert b"secret-of-sixteen" not in sent
    arrived = pickle.loads(sent)
    assert arrived.unwrap_key(wrapped, "k") == b"secret-of-sixteen"
    assert arrived.calls().misses == 1
    assert (arrived._table, arrived._ttl_ms, arrived._retry) == ("t", 7, QUICK)


def test_a_client_of_ones_own_says_what_it_authenticates_or_the_user_does() -> None:
    assert not CachedKms(OwnKms()).authenticates_wrapping("k")
    assert CachedKms(OwnKms(), authenticated_wrapping=True).authenticates_wrapping("k")
    rsa = AzureKeyVault("https://v.vault.azure.net")
    assert not CachedKms(rsa).authenticates_wrapping("k")
    aes = AzureKeyVault("https://v.managedhsm.azure.net", algorithm="A256KW")
    assert CachedKms(aes, authenticated_wrapping=False).authenticates_wrapping("k")


# ---- of properties


def test_every_kms_is_made_of_its_own_properties() -> None:
    made = {
        "keystore": Keystore("/k.p12", password_env="P"),
        "aws": AwsKms(region="r", encryption_context={"A": "{table-uuid}"}),
        "azure": AzureKeyVault(
            "https://v.vault.azure.net", store_key_version=True, versions_to_try=3
        ),
        "gcp": GcpKms(additional_authenticated_data="table-uuid"),
        "hadoop": HadoopKms("kms://https@h/kms", user="u"),
    }
    for kind, kms in made.items():
        found = from_properties({"uri": "x", **kms.properties()})
        assert found._client.kms == kms  # type: ignore[attr-defined]
        assert found.binds_table == (kind in ("aws", "gcp"))
    by_class = {
        k: v for k, v in made["keystore"].properties().items() if k != "encryption.kms-type"
    }
    by_class["encryption.kms-impl"] = "io.icebergcrypto.kms.KeystoreKmsClient"
    assert from_properties(by_class)._client.kms == made["keystore"]  # type: ignore[attr-defined]


def test_names_have_no_case_and_icebergs_own_count() -> None:
    kms = from_properties(
        {"Encryption.KMS-type": " AWS ", "client.region": "eu", "kms.endpoint": "https://x"}
    )
    assert kms._client.kms == AwsKms(region="eu", endpoint="https://x")  # type: ignore[attr-defined]


def test_times_of_the_cache_and_retries() -> None:
    kms = from_properties(
        {
            "encryption.kms-type": "aws",
            "encryption.kms.cache.ttl-ms": "0",
            "encryption.kms.retry.max-attempts": "2",
            "encryption.kms.retry.initial-delay-ms": "3",
            "encryption.kms.retry.max-delay-ms": "4",
            "encryption.kms.retry.timeout-ms": "5",
            "encryption.kms.call-timeout-ms": "6",
            "encryption.kms.circuit-breaker.failures": "0",
        }
    )
    assert (kms._ttl_ms, kms._retry) == (0, Retry(2, 3, 4, 5))
    assert kms._client._reached.call_timeout_ms == 6  # type: ignore[attr-defined]
    default = from_properties({"encryption.kms-type": "aws"})
    assert (default._ttl_ms, default._retry) == (3_600_000, Retry(5, 200, 5_000, 30_000))


AWS = {"encryption.kms-type": "aws"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "No KMS is configured"),
        ({"encryption.kms-type": "swarm"}, "Unknown KMS type 'swarm'"),
        (
            {"encryption.kms-impl": "com.acme.Kms"},
            "encryption.kms-impl=com.acme.Kms names a Java class",
        ),
        ({**AWS, "encryption.kms-impl": "com.acme.Kms"}, "are both set"),
        ({**AWS, "encryption.kms.aws.regoin": "r"}, "There is no catalog property"),
        ({**AWS, "encryption.kms.vault.address": "r"}, "belongs to KMS type vault"),
        ({**AWS, "encryption.kms.authenticated-wrapping": "true"}, "already decides this"),
        ({**AWS, "encryption.kms.aws.session-token": "only-for-tests"}, "would show a secret"),
        ({**AWS, "encryption.kms.cache.ttl-ms": "-1"}, "is not a whole number"),
        ({**AWS, "encryption.kms.retry.max-attempts": "0"}, "is not a whole number"),
        ({**AWS, "encryption.kms.aws.region": " "}, "is empty"),
        ({**AWS, "encryption.kms.aws.region": "a", "client.region": "b"}, "contradict"),
        (
            {**AWS, "encryption.kms.aws.region": "a", "encryption.kms.aws.Region": "b"},
            "is set twice",
        ),
        ({**AWS, "client.credentials-provider": "com.acme.Login"}, "Python has no such choice"),
        ({"encryption.kms-type": "hadoop"}, "encryption.kms.hadoop.uri is missing"),
        (
            {
                "encryption.kms-type": "vault",
                "encryption.kms.vault.address": "https://v",
                "encryption.kms.vault.token-env": "T",
                "encryption.kms.vault.read-bare": "yes",
            },
            "is neither true nor false",
        ),
    ],
)
def test_what_is_wrong_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        from_properties(given)
    assert words in raised.value.message
    assert raised.value.hint
    assert "only-for-tests" not in str(raised.value)


def test_every_kms_says_when_the_table_is_not_known() -> None:
    for kms, setting in (
        (AwsKms(region="r", encryption_context={"t": "{table-uuid}"}), "encryption-context.t"),
        (GcpKms(additional_authenticated_data="table-uuid"), "table-uuid"),
    ):
        key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
        with pytest.raises(ConfigurationError, match=f"{setting}.* asks for the table's UUID"):
            kms.wrap_key(KEK, key)
    assert set(BY_TYPE) == {"aws", "azure", "gcp", "hadoop", "keystore", "pkcs11", "vault"}


# ---- a keystore


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Keystore:
    """The one of the golden tables, opened once."""
    folder = tmp_path_factory.mktemp("keystore")
    for name in ("keys.p12", "keys.password"):
        secret_file(folder / name, (VECTORS / name).read_bytes())
    return Keystore(folder / "keys.p12", password_file=folder / "keys.password")


GOLDEN = {
    entry["way"]: bytes.fromhex(entry["wrapped"])
    for entry in json.loads((VECTORS / "keys-f0aa7ec.json").read_text())
}


def test_a_keystore_unwraps_what_java_wrapped(keystore: Keystore) -> None:
    of_java = GOLDEN["keystore"]
    assert keystore.unwrap_key(of_java, "k1") == KEK
    wrapped = keystore.wrap_key(KEK, "k1")
    assert wrapped.startswith(of_java[:18]), "the same header"
    assert len(wrapped) == len(of_java)
    assert keystore.unwrap_key(wrapped, "k1") == KEK
    text = repr(keystore) + repr(vars(keystore)) + repr(vars(keystore._kms_client._reached))
    password = Path(keystore.password_file or "").read_text().strip()
    assert password not in text
    assert password.encode() not in pickle.dumps(keystore)


def test_what_a_keystore_refuses(keystore: Keystore) -> None:
    wrapped = GOLDEN["keystore"]
    other = wrapped.replace(b"keystore", b"vault-xy")
    later = wrapped[:17] + b"\x02" + wrapped[18:]
    cases: list[tuple[bytes, str, type[IcebergCryptoError], str]] = [
        (wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "k1", BadWrappedKeyError, "does not unwrap"),
        (wrapped, "k2", BadWrappedKeyError, "does not unwrap"),
        (wrapped[:40], "k1", BadWrappedKeyError, "was not wrapped by"),
        (wrapped[:10], "k1", BadWrappedKeyError, "does not have its header"),
        (b"", "k1", BadWrappedKeyError, "does not have its header"),
        (other, "k1", BadWrappedKeyError, "was wrapped by KMS type 'vault-xy'"),
        (wrapped[:4] + b"\x02" + wrapped[5:], "k1", NotSupportedError, "has layout 2"),
        (wrapped[:14] + b"\xff" + wrapped[15:], "k1", BadWrappedKeyError, "impossible key version"),
        (later, "k1", KeyNotFoundError, "not its version 2"),
        (wrapped, "k3", KeyNotFoundError, "has no key 'k3'"),
        (wrapped, "k1.v2", ConfigurationError, "is the name that"),
    ]
    for blob, key_id, kind, words in cases:
        with pytest.raises(IcebergCryptoError) as raised:
            keystore.unwrap_key(blob, key_id)
        assert type(raised.value) is kind, raised.value
        assert words in raised.value.message
        assert raised.value.hint
    with pytest.raises(KeyNotFoundError, match="it has: k1, k2"):
        keystore.wrap_key(KEK, "k3")


def test_a_wrong_keystore_that_is_put_right_is_used_at_once(
    keystore: Keystore, tmp_path: Path
) -> None:
    """As in Java: the same names may be in another deployment's file."""
    copy = at(keystore, tmp_path)
    wrong = GOLDEN["keystore"][:-1] + bytes([GOLDEN["keystore"][-1] ^ 1])
    with pytest.raises(BadWrappedKeyError):
        copy.unwrap_key(wrong, "k1")
    keys: Any = copy._kms_client._reached.keys()
    right = keys._known
    keys._known = replace(right, stamp=(0, 0, 0, 0), opened={"k1": bytes(32)})
    assert copy.unwrap_key(GOLDEN["keystore"], "k1") == KEK
    assert keys._known.stamp == right.stamp


def at(keystore: Keystore, folder: Path, change: Callable[[bytes], bytes] = bytes) -> Keystore:
    """A copy of the keystore, changed."""
    path = secret_file(folder / "copy.p12", change(Path(keystore.path).read_bytes()))
    return Keystore(path, password_file=keystore.password_file)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda data: data[:-60], ConfigurationError, "is not a PKCS12 keystore"),
        (lambda data: b"PK\x03\x04 a zip", ConfigurationError, "is not a PKCS12 keystore"),
        (
            lambda data: data.replace(b"\0k\x001", b"\0k\x003"),
            LoginFailedError,
            "or the file was changed",
        ),
        # Object identifiers: that of SHA-256 becomes that of SHA-512/256, and CBC's that of CFB.
        (
            lambda data: data.replace(
                bytes.fromhex("0609608648016503040201"), bytes.fromhex("0609608648016503040206")
            ),
            NotSupportedError,
            "its MAC uses",
        ),
        (
            lambda data: data.replace(
                bytes.fromhex("060960864801650304012a"), bytes.fromhex("060960864801650304012c")
            ),
            NotSupportedError,
            "entry 'k1' uses aes256_cfb",
        ),
        (
            lambda data: data.replace(bytes.fromhex("0203124f80"), bytes.fromhex("02037fffff")),
            NotSupportedError,
            "iterations",
        ),
    ],
    ids=["cut off", "another file", "changed", "MAC", "cipher", "iterations"],
)
def test_a_file_that_is_refused(
    keystore: Keystore,
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    kind: type[IcebergCryptoError],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kind is not LoginFailedError:  # the MAC itself is looked at in that test alone
        monkeypatch.setattr(_pkcs12, "_check_mac", lambda content, password: None)
    original = Path(keystore.path).read_bytes()
    assert change(original) != original
    with pytest.raises(IcebergCryptoError) as raised:
        at(keystore, tmp_path, change).unwrap_key(GOLDEN["keystore"], "k1")
    assert type(raised.value) is kind, raised.value
    assert words in raised.value.message
    assert raised.value.hint


def test_a_file_that_others_may_read_or_that_is_not_there(
    keystore: Keystore, tmp_path: Path
) -> None:
    copy = at(keystore, tmp_path)
    Path(copy.path).chmod(0o644)
    with pytest.raises(ConfigurationError, match="is open to others"):
        copy.wrap_key(KEK, "k1")
    Path(copy.path).unlink()
    with pytest.raises(ConfigurationError, match="there is no keystore"):
        copy.wrap_key(KEK, "k1")


def test_a_file_is_read_again_when_it_changed(
    keystore: Keystore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = at(keystore, tmp_path)
    read: list[int] = []

    def keys(content: bytes, password: str, path: object) -> dict[str, Any]:
        read.append(len(content))
        return {"k1": OneKey(), **({"k1.v2": OneKey()} if content.endswith(b"more") else {})}

    class OneKey:
        def key(self, password: str) -> bytes:
            return bytes(32)

    monkeypatch.setattr(_pkcs12, "read", keys)
    assert parse(copy.wrap_key(KEK, "k1"), "keystore", "k1").version == 1
    assert parse(copy.wrap_key(KEK, "k1"), "keystore", "k1").version == 1
    assert len(read) == 1
    with Path(copy.path).open("ab") as file:
        file.write(b"more")
    wrapped = copy.wrap_key(KEK, "K1")
    assert parse(wrapped, "keystore", "K1").version == 2, "the newest wraps"
    assert copy.unwrap_key(wrapped, "K1") == KEK
    assert len(read) == 2


# ---- forked processes


def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    """One is in a call, for whose key others wait, and locks are held."""
    entered, go = threading.Event(), threading.Event()

    class Slow(OwnKms):
        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            if threading.current_thread() is not threading.main_thread():
                entered.set()
                assert go.wait(10)
            return super().unwrap_key(wrapped_key, wrapping_key_id)

    kms = CachedKms(Slow())
    kept = kms.wrap_key(KEK, "k")
    (of_parent,) = kms._state.cache._entries.values()
    table = kms.for_table("t")

    def action() -> bool:
        assert of_parent.held == bytes(len(KEK)), "its copies of keys are overwritten"
        found = table.unwrap_key(b"a", "k"), kms.unwrap_key(kept, "k")
        asked = KmsCalls(unwrap_calls=2, misses=2)
        return found == (b"a", KEK) and kms.calls() == table.calls() == asked

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(table.unwrap_key, b"a", "k")
        assert entered.wait(10)
        with kms._state._lock, kms._state.cache._lock:
            assert in_a_fork(action)
        assert of_parent.held == KEK
        go.set()
        assert running.result(10) == b"a"
    assert kms.unwrap_key(kept, "k") == KEK
    assert kms.calls().hits == 1


def test_a_forked_process_logs_in_itself(
    keystore: Keystore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes nothing that its parent uses."""
    wrapped = keystore.wrap_key(KEK, "k1")
    reached = keystore._kms_client._reached
    keys: Any = reached.keys()
    monkeypatch.setattr(keys, "close", lambda: os._exit(2))
    with reached._lock, keys._lock:
        assert in_a_fork(
            lambda: keystore.unwrap_key(wrapped, "k1") == KEK and reached.keys() is not keys
        )
    assert reached.keys() is keys


def test_a_forked_process_opens_its_own_session_of_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin that was refused is not tried again. kms/contract/test_python.py has a token of SoftHSM."""
    monkeypatch.setattr(_Token, "_all", {})
    monkeypatch.setattr(_Token, "_begun", set())
    token, unused = (_Token.at(Place(f"{one}.so", "t", None)) for one in ("lib", "unused"))
    session: Any = object()
    token._session, token._refused = session, {b"hash"}
    ended: list[int] = []
    library = SimpleNamespace(finalize=lambda: ended.append(1))
    pkcs11 = SimpleNamespace(lib=lambda _: library, exceptions=SimpleNamespace(PKCS11Error=OSError))
    assert token._library(pkcs11) is library
    with ThreadPoolExecutor(1) as pool:
        pool.submit(token.lock.acquire).result(10)
        assert in_a_fork(
            lambda: (
                token.lock.acquire(timeout=1)
                and token._session is None
                and token._refused == {b"hash"}
                and token._library(pkcs11) is token._library(pkcs11) is library
                and unused._library(pkcs11) is library
                and ended == [1]
            )
        )
    assert token._library(pkcs11) is library
    assert not ended, "that is for forked processes"
    assert token._session is session


# ---- what servers are not needed for


def test_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value, as in catalogues of CRCs
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


FULL = "projects/p/locations/l/keyRings/r/cryptoKeys/k"


@pytest.mark.parametrize("key_id", ["k", FULL, f"{FULL}/cryptoKeyVersions/2"])
def test_cloud_kms_is_sent_full_names(monkeypatch: pytest.MonkeyPatch, key_id: str) -> None:
    """The last part of one is enough for a user. It decrypts by the key's name alone."""
    sent = {}

    def ask(_: GcpKeys, method: str, request: dict[str, Any], *__: Any) -> SimpleNamespace:
        sent[method] = request["name"]
        checksums = {"ciphertext_crc32c": crc32c(KEK), "plaintext_crc32c": crc32c(KEK)}
        return SimpleNamespace(
            ciphertext=KEK, plaintext=KEK, verified_plaintext_crc32c=True, **checksums
        )

    monkeypatch.setattr(GcpKeys, "_ask", ask)
    keys = GcpKeys(GcpKms(project="p", location="l", key_ring="r"), 1)
    keys.wrap(KEK, key_id, None)
    keys.unwrap(KEK, key_id, None)
    assert sent == {"encrypt": FULL if key_id == "k" else key_id, "decrypt": FULL}


class FakeHadoop:
    """What Hadoop KMS does with encrypted data keys: AES/CTR, from an IV whose bits are flipped."""

    def __init__(self, master: bytes) -> None:
        self.master = master

    def __call__(
        self, server: Any, method: str, path: str, body: Any, seconds: float
    ) -> dict[str, Any]:
        assert (method, path) == ("POST", "keyversion/golden@0/_eek?eek_op=decrypt")
        given = {name: base64.urlsafe_b64decode(body[name]) for name in ("iv", "material")}
        flipped = bytes(byte ^ 0xFF for byte in given["iv"])
        cipher = Cipher(algorithms.AES(self.master), modes.CTR(flipped)).decryptor()
        return {"material": base64.urlsafe_b64encode(cipher.update(given["material"])).decode()}


def test_hadoop_kms_unwraps_what_java_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server itself, which takes a JVM, is asked in test_golden_keys.py and contract/, by night."""
    master = bytes.fromhex(json.loads((VECTORS / "master-keys.json").read_text())["hadoop"])
    wrapped = GOLDEN["hadoop"]
    fake = FakeHadoop(master)
    monkeypatch.setattr(HadoopKms, "_request", lambda self, *args: fake(*args))
    kms = HadoopKms("kms://https@one;two:9600/kms", user="u")
    assert kms.unwrap_key(wrapped, "golden") == KEK
    for place in range(len(wrapped)):
        changed = wrapped[:place] + bytes([wrapped[place] ^ 1]) + wrapped[place + 1 :]
        with pytest.raises((BadWrappedKeyError, NotSupportedError, AssertionError)):
            kms.unwrap_key(changed, "golden")
    for length in range(len(wrapped)):
        with pytest.raises(BadWrappedKeyError):
            kms.unwrap_key(wrapped[:length], "golden")


def test_hadoop_kms_asks_the_next_server_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def request(self: HadoopKms, server: Any, *args: Any) -> Any:
        asked.append(server.hostname)
        raise Refused(503 if len(asked) == 1 else 500, {"RemoteException": MISSING})

    monkeypatch.setattr(HadoopKms, "_request", request)
    kms = CachedKms(HadoopKms("kms://https@one;two:9600/kms", user="u"), retry=QUICK)
    with pytest.raises(KeyNotFoundError, match="has no key 'k'"):
        kms.wrap_key(KEK, "k")
    assert asked == ["one", "two"]


MISSING = {"exception": "IOException", "message": "No KeyVersion exists for key 'k'"}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("'k@1' not found", KeyNotFoundError),
        ("KeyVersion name 'k@1' does not exist", KeyNotFoundError),
        ('relation "ranger_keystore" does not exist', KmsUnavailableError),
        ("Principal 'HTTP/kms@REALM' not found", KmsUnavailableError),
        ("File file:/mnt/kms/kms.keystore does not exist", KmsUnavailableError),
    ],
)
def test_only_a_key_of_hadoop_kms_is_a_missing_key(
    monkeypatch: pytest.MonkeyPatch, message: str, kind: type[IcebergCryptoError]
) -> None:
    def request(*_: Any) -> Any:
        raise Refused(500, {"RemoteException": {"exception": "IOException", "message": message}})

    monkeypatch.setattr(HadoopKms, "_request", request)
    with pytest.raises(kind) as raised:
        HadoopKms("kms://https@one:9600/kms", user="u").wrap_key(KEK, "k")
    assert type(raised.value) is kind


class FakeToken:
    """A device whose sessions show keys while they are logged in; what it decrypts is always the same."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels
        self.logins: list[FakeToken.Session] = []

    class Session:
        def __init__(self, of: "FakeToken") -> None:
            self.of, self.ended = of, False

        def get_objects(self, kind: Any) -> list[Any]:
            shown = () if self.ended else self.of.labels
            return [SimpleNamespace(label=one, decrypt=lambda *_, **__: KEK) for one in shown]

        def close(self) -> None:
            self.ended = True

    def open(self, user_pin: str) -> Session:
        self.logins.append(FakeToken.Session(self))
        return self.logins[-1]


def test_a_token_that_shows_no_key_is_logged_in_to_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """kms/pkcs11/test_faults.py has Java's client, and SoftHSM."""
    monkeypatch.setattr(_Token, "_all", {})
    place = Place("lib.so", "t", None)
    device = FakeToken("k1")
    monkeypatch.setattr(_Token, "_find", lambda *_: device)
    pin: Any = SimpleNamespace(read=lambda: "1234", env="PIN", file=None)
    keys = Pkcs11Keys(place, pin)
    wrapped = WrappedKey("pkcs11", 1, bytes(44)).encode()
    assert keys.unwrap(wrapped, "k1", None) == KEK
    device.labels = ("k1", "k2")
    device.logins[-1].ended = True
    assert keys.unwrap(wrapped, "k2", None) == KEK
    assert len(device.logins) == 2
    device.labels = ()
    with pytest.raises(KeyNotFoundError, match="is the HSM behind it up"):
        keys.unwrap(wrapped, "k3", None)
    assert len(device.logins) == 3


@pytest.mark.parametrize("text", ["+/8=", "-_8=", "-_8", "+/8"])
def test_answers_in_base64_of_either_alphabet(text: str) -> None:
    assert decoded(text) == b"\xfb\xff"
    assert decoded(f"{text}!") == decoded(text[:1]) == decoded(None) == b""
