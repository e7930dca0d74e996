"""Keys that earlier builds wrapped are unwrapped by this one; vectors/README.md says which, and what AWS's are not."""

import json
from collections.abc import Iterator

import pytest
from harness.jvm import Client, Jvm
from vectors.write_keys import HERE, KEK, TABLE, WAYS, kms_clients

from pyspark_iceberg_crypto import BadWrappedKeyError

KEYS = {
    f"{path.stem}: {entry['way']}": (entry["way"], bytes.fromhex(entry["wrapped"]))
    for path in sorted(HERE.glob("keys-*.json"))
    for entry in json.loads(path.read_text())
}
Clients = tuple[Jvm, dict[str, tuple[dict[str, str], str]]]


@pytest.fixture(scope="module")
def clients(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clients]:
    """With servers and a JVM of their own: a token's library reads its keys once, when it is loaded."""
    chosen = [item.name for item in request.session.items if item.path == request.path]
    hadoop = any("hadoop" in name for name in chosen)
    with kms_clients(tmp_path_factory.mktemp("golden"), hadoop=hadoop) as made:
        yield made


def client_for(clients: Clients, way: str) -> tuple[Client, str]:
    jvm, of = clients
    kms, further = WAYS[way]
    properties, key_id = of[kms]
    client = jvm.client(properties | further, raw=True)
    return client.of_table(TABLE) if "bound" in way else client, key_id


def test_every_way_is_kept() -> None:
    assert {way for way, _ in KEYS.values()} == set(WAYS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * ("hadoop" in name)) for name in KEYS],
)
def test_a_key_that_an_earlier_build_wrapped(clients: Clients, name: str) -> None:
    way, wrapped = KEYS[name]
    client, key_id = client_for(clients, way)
    assert client.unwrap(wrapped, key_id) == KEK
    header = wrapped[: 6 + wrapped[5] + 4] if wrapped.startswith(b"ICWK") else b""
    assert client.wrap(KEK, key_id).startswith(header), "this build writes the same layout"
    with pytest.raises(BadWrappedKeyError):
        client.unwrap(wrapped[:-1] + bytes([wrapped[-1] ^ 1]), key_id)
