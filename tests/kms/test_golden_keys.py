"""Keys that earlier builds wrapped are unwrapped by this one; vectors/README.md says which, and what AWS's are not.

And Java and Python unwrap what the other one wraps.
"""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from doubles.azure_world import SCOPE
from harness.in_python import in_python
from harness.jvm import ENVIRONMENT, Client, Jvm
from vectors.write_keys import HERE, KEK, TABLE, WAYS, Servers, kms_clients

from pyspark_iceberg_crypto import BadWrappedKeyError
from pyspark_iceberg_crypto.kms import CachedKms, from_properties

KEYS = {
    f"{path.stem}: {entry['way']}": (entry["way"], bytes.fromhex(entry["wrapped"]))
    for path in sorted(HERE.glob("keys-*.json"))
    for entry in json.loads(path.read_text())
}
Clients = tuple[Jvm, Servers]


def by_night(name: str) -> Any:
    """Hadoop KMS is slow to start, and each keystore takes seconds to open.

    By day are the oldest build's keys and the newest one's; and tests on tables that Python writes have a keystore.
    """
    slow = "hadoop" in name or name == "keystore" or name.startswith("keys-c6b240d")
    return pytest.param(name, marks=[pytest.mark.nightly] * slow)


@pytest.fixture(scope="module")
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clients]:
    """With servers and a JVM of their own: a token's library reads its keys once, when it is loaded."""
    chosen = [item.name for item in request.session.items if item.path == request.path]
    hadoop = any("hadoop" in name for name in chosen)
    with kms_clients(tmp_path_factory.mktemp("golden"), hadoop=hadoop) as made:
        yield made


@pytest.fixture
def python(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has what the servers' clients need, and knows the vaults' names."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *args, **how: resolve("127.0.0.1", *args, **how)
    )
    in_python({**ENVIRONMENT, **clients[1].environment}, monkeypatch)


def client_for(clients: Clients, way: str) -> tuple[Client, str]:
    jvm, servers = clients
    kms, further = WAYS[way]
    properties, key_id = servers.clients[kms]
    client = jvm.client(properties | further, raw=True)
    return client.of_table(TABLE) if "bound" in way else client, key_id


@pytest.fixture(scope="module")
def made() -> dict[str, CachedKms]:
    """Python's clients, each made once: a keystore takes a second to open."""
    return {}


def python_for(clients: Clients, made: dict[str, CachedKms], way: str) -> CachedKms:
    kms, further = WAYS[way]
    properties = {**clients[1].clients[kms][0], **further, "encryption.kms.cache.ttl-ms": "0"}
    if kms.startswith("azure"):  # Azure's library knows no vaults at other ports
        properties["encryption.kms.azure.token-scope"] = SCOPE
    if way not in made:
        made[way] = from_properties(properties)
    return made[way].for_table(TABLE if "bound" in way else None)


def test_every_way_is_kept() -> None:
    assert {way for way, _ in KEYS.values()} == set(WAYS)


@pytest.mark.parametrize("name", [by_night(name) for name in KEYS])
def test_a_key_that_an_earlier_build_wrapped(
    clients: Clients, python: None, made: dict[str, CachedKms], name: str
) -> None:
    way, wrapped = KEYS[name]
    header = wrapped[: 6 + wrapped[5] + 4] if wrapped.startswith(b"ICWK") else b""
    java, key_id = client_for(clients, way)
    kms = python_for(clients, made, way)
    damaged = wrapped[:-1] + bytes([wrapped[-1] ^ 1])
    assert java.unwrap(wrapped, key_id) == kms.unwrap_key(wrapped, key_id) == KEK
    for again in (java.wrap(KEK, key_id), kms.wrap_key(KEK, key_id)):
        assert again.startswith(header), "this build writes the same layout"
        assert len(again) == len(wrapped)
    for unwrap in (java.unwrap, kms.unwrap_key):
        with pytest.raises(BadWrappedKeyError):
            unwrap(damaged, key_id)


@pytest.mark.parametrize("way", [by_night(way) for way in WAYS])
def test_java_and_python_unwrap_what_the_other_one_wraps(
    clients: Clients, python: None, made: dict[str, CachedKms], way: str
) -> None:
    java, key_id = client_for(clients, way)
    kms = python_for(clients, made, way)
    for length in (16, 24, 32):
        key = bytes(range(length))
        assert java.unwrap(kms.wrap_key(key, key_id), key_id) == key
        assert kms.unwrap_key(java.wrap(key, key_id), key_id) == key
    if "bound" in way:
        other = "00000000-6b1c-4d3a-9a51-0c8de4a7f0aa"
        with pytest.raises(BadWrappedKeyError):
            kms.for_table(other).unwrap_key(java.wrap(key, key_id), key_id)
