"""The Hadoop KMS client against a real one: wrapped keys as documented, rolled keys, its lists, its servers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from doubles.faults import FaultProxy
from harness.jvm import Client, Jvm
from harness.refused import refused
from harness.tls import make_authority
from servers.hadoop_kms import ADMIN, USER, HadoopKmsServer, eventually, start_hadoop_kms

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    HadoopKms,
    LoginFailedError,
)

pytestmark = pytest.mark.nightly

KEK = b"0123456789abcdef"
HEADER = b"ICWK\x01\x06hadoop"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopKmsServer]:
    started = start_hadoop_kms(tmp_path_factory.mktemp("hadoop") / "kms")
    yield started
    started.stop()


@pytest.fixture
def client(jvm: Jvm, server: HadoopKmsServer) -> Client:
    return make(jvm, uri(server.port))


def uri(port: int, host: str = "127.0.0.1", scheme: str = "http") -> str:
    return f"kms://{scheme}@{host}:{port}/kms"


def make(jvm: Jvm, address: str, *, raw: bool = True, **more: str) -> Client:
    given = {"uri": address, "user": USER, **more}
    properties = {f"encryption.kms.hadoop.{n.replace('_', '-')}": v for n, v in given.items() if v}
    return jvm.client({"encryption.kms-type": "hadoop", **properties}, raw=raw)


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_layout(server: HadoopKmsServer, admin: HadoopKms, client: Client, bits: int) -> None:
    """As docs/kms/hadoop.md has it: taken apart, and opened with the KMS and another AES-GCM."""
    key = admin.create_key(f"layout-{bits}", key_bits=bits).key_id
    blob = client.wrap(KEK, key)
    header, body = blob[: len(HEADER) + 4], blob[len(HEADER) + 4 :]
    assert header == HEADER + (1).to_bytes(4, "big")
    version, iv, length = body[1:2], body[2:18], body[18]
    assert (body[0], version, length) == (1, b"0", bits // 8)
    start, sealed = body[: 19 + length], body[19 + length :]
    data_key = server.data_key(key, f"{key}@0", iv, start[19:])
    aad = start + header + key.encode()
    assert AESGCM(data_key).decrypt(sealed[:12], sealed[12:], aad) == KEK
    assert data_key not in blob
    assert client.wrap(KEK, key)[18:34] != iv, "each has a data key of its own"


def test_what_the_kms_decrypts_to_another_key_is_refused(
    server: HadoopKmsServer, client: Client, key: str
) -> None:
    """The KMS authenticates nothing, and gives a data key for whatever it is given."""
    blob = bytearray(client.wrap(KEK, key))
    blob[len(HEADER) + 4 + 19] ^= 1  # of the encrypted data key
    body = bytes(blob[len(HEADER) + 4 :])
    assert len(server.data_key(key, f"{key}@0", body[2:18], body[19:51])) == 32
    told = ("does not unwrap with version 0", f"'{key}'", "Hadoop KMS at")
    refused(BadWrappedKeyError, lambda: client.unwrap(bytes(blob), key), *told)


def test_a_rolled_key(admin: HadoopKms, client: Client, key: str) -> None:
    old = client.wrap(KEK, key)
    rolled = admin.rotate_key(key)
    assert (rolled.version, rolled.versions) == ("2", 2)
    mixed = old[: len(HEADER) + 3] + b"\2" + old[len(HEADER) + 4 :]
    refused(BadWrappedKeyError, lambda: client.unwrap(mixed, key), f"'{key}'")


def test_the_lists_of_the_policy_are_enough(
    jvm: Jvm, server: HadoopKmsServer, admin: HadoopKms, key: str
) -> None:
    """And no more than what is needed: without one of them the error names it."""
    policy = HadoopKms(uri(server.port), user="etl").driver_policy([key])
    lists = dict(
        line.removeprefix("<property><name>")
        .removesuffix("</value></property>")
        .split("</name><value>")
        for line in policy.splitlines()
        if line.startswith("<property>")
    )
    client = make(jvm, uri(server.port), user="etl")
    generate, decrypt, get = lists
    assert (get, lists[get]) == ("hadoop.kms.acl.GET", " ")
    try:
        for given, missing in (({}, generate), ({generate: "etl"}, decrypt)):
            server.allow(given)
            told = (missing, f"'{key}'", "user 'etl' may not")
            eventually(
                lambda told=told: refused(AccessDeniedError, lambda: client.wrap(KEK, key), *told)
            )
        server.allow(lists)
        eventually(lambda: client.unwrap(client.wrap(KEK, key), key))
    finally:
        server.deny(False)  # and waits for that, or the next test might be refused
    made = server.ask("POST", "keys", {"name": "seen-by-nobody", "length": 256})[1]
    assert made["versionName"] == "seen-by-nobody@0"
    assert made["material"] is None


def test_another_server_is_asked_when_one_is_down(
    jvm: Jvm, server: HadoopKmsServer, key: str
) -> None:
    """Nobody listens on 127.0.0.2."""
    several = f"kms://http@127.0.0.2;127.0.0.1:{server.port}/kms"
    client = make(jvm, several, raw=False)
    assert client.unwrap(client.wrap(KEK, key), key) == KEK
    assert client.metrics()["retries"] == 1, "and from then on the other one"


def test_over_tls(
    jvm: Jvm, server: HadoopKmsServer, key: str, faults: Callable[..., FaultProxy], tmp_path: Path
) -> None:
    authority = make_authority(tmp_path, "localhost")
    proxy = faults(server.port, authority.server)
    address = uri(proxy.port, "localhost", "https")
    client = make(jvm, address, ca_file=str(authority.ca_file))
    assert client.unwrap(client.wrap(KEK, key), key) == KEK
    trusting = HadoopKms(address, user=ADMIN, ca_file=authority.ca_file)
    assert trusting.describe_key(key).key_id == key
    untrusted = make(jvm, address)
    for call in (
        lambda: untrusted.wrap(KEK, key),
        lambda: HadoopKms(address, user=ADMIN).describe_key(key),
    ):
        refused(ConfigurationError, call, "certificate is not trusted", f"'{key}'")


def test_the_login_of_the_process(jvm: Jvm, server: HadoopKmsServer, key: str) -> None:
    """Where Hadoop's security is off, its name."""
    me = str(jvm.view.java.lang.System.getProperty("user.name"))
    client = make(jvm, uri(server.port), user="")
    told = ("the login of this process may not GENERATE_EEK", f"[{me}]", f"'{key}'")
    refused(AccessDeniedError, lambda: client.wrap(KEK, key), *told)
    try:
        server.allow({"default.key.acl.GENERATE_EEK": me, "default.key.acl.DECRYPT_EEK": me})
        eventually(lambda: client.unwrap(client.wrap(KEK, key), key))
    finally:
        server.allow({})
        others = make(jvm, uri(server.port))
        eventually(lambda: others.wrap(KEK, key))  # or the next test might be refused


def test_no_hadoop_kms_there(jvm: Jvm, server: HadoopKmsServer) -> None:
    elsewhere = uri(server.port).replace("/kms", "/other").replace("/other:", "/kms:")
    for address in (f"kms://http@127.0.0.1:{server.port}/other", elsewhere):
        client = make(jvm, address)
        refused(ConfigurationError, lambda c=client: c.wrap(KEK, "sales"), "'sales'", "HTTP 404")


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (200, "{}", ConfigurationError),
        (200, "<html>", ConfigurationError),
        (302, "", ConfigurationError),
        (401, "<html>", LoginFailedError),
        (403, "<html>", LoginFailedError),
    ],
)
def test_answers_of_others(
    jvm: Jvm,
    server: HadoopKmsServer,
    key: str,
    faults: Callable[..., FaultProxy],
    status: int,
    answer: str,
    kind: Any,
) -> None:
    proxy = faults(server.port)
    client = make(jvm, uri(proxy.port))
    blob = client.wrap(KEK, key)
    proxy.mode = ("status", status, {"Location": "http://127.0.0.1/"}, answer)
    refused(kind, lambda: client.wrap(KEK, key), f"'{key}'", uri(proxy.port))
    refused(kind, lambda: client.unwrap(blob, key), f"'{key}'", uri(proxy.port))
    helper = HadoopKms(uri(proxy.port), user=ADMIN)
    if answer != "{}":
        refused(kind, lambda: helper.describe_key(key), f"'{key}'", uri(proxy.port))
