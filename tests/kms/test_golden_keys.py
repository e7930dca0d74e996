"""Keys that an earlier build wrapped are unwrapped by this one; vectors/README.md says why AWS's are not among them.

And Java and Python unwrap what the other one wraps.
"""

import json
import socket
from collections.abc import Iterator

import pytest
from doubles.azure_world import SCOPE
from harness.in_python import in_python
from harness.jvm import ENVIRONMENT, Client, Jvm
from vectors.write_keys import HERE, KEK, TABLE, WAYS, Servers, kms_clients

from pyspark_iceberg_crypto import BadWrappedKeyError
from pyspark_iceberg_crypto.kms import CachedKms, from_properties

KEYS = {
    entry["way"]: bytes.fromhex(entry["wrapped"])
    for entry in json.loads((HERE / "keys-f0aa7ec.json").read_text())
}
Clients = tuple[Jvm, Servers]


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


def python_for(clients: Clients, way: str) -> CachedKms:
    kms, further = WAYS[way]
    properties = {**clients[1].clients[kms][0], **further, "encryption.kms.cache.ttl-ms": "0"}
    if kms.startswith("azure"):  # Azure's library knows no vaults at other ports
        properties["encryption.kms.azure.token-scope"] = SCOPE
    return from_properties(properties).for_table(TABLE if "bound" in way else None)


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[pytest.mark.nightly] * (way == "hadoop")) for way in WAYS],
)
def test_a_key_that_an_earlier_build_wrapped(clients: Clients, python: None, way: str) -> None:
    """Hadoop KMS is slow to start."""
    wrapped = KEYS[way]
    header = wrapped[: 6 + wrapped[5] + 4] if wrapped.startswith(b"ICWK") else b""
    damaged = wrapped[:-1] + bytes([wrapped[-1] ^ 1])
    java, key_id = client_for(clients, way)
    kms = python_for(clients, way)
    assert java.unwrap(wrapped, key_id) == kms.unwrap_key(wrapped, key_id) == KEK
    for wrap, unwrap in ((java.wrap, kms.unwrap_key), (kms.wrap_key, java.unwrap)):
        again = wrap(KEK, key_id)
        assert again.startswith(header), "this build writes the same layout"
        assert len(again) == len(wrapped)
        for key in (KEK, bytes(range(24)), bytes(range(32))):
            assert unwrap(wrap(key, key_id), key_id) == key
        with pytest.raises(BadWrappedKeyError):
            unwrap(damaged, key_id)
    if "bound" in way:
        other = "00000000-6b1c-4d3a-9a51-0c8de4a7f0aa"
        with pytest.raises(BadWrappedKeyError):
            kms.for_table(other).unwrap_key(wrapped, key_id)
