"""A real Ranger KMS where it differs from Hadoop's: its policies, its names, a request that it does not know.

What it has in common with all KMSs is in tests/kms/contract, and a table's life in tests/kms/test_every_kms.py.
"""

import uuid
from collections.abc import Iterator

import pytest
from doubles.ranger_admin import policy
from harness.jvm import Client, Jvm
from harness.refused import refused
from servers.hadoop_kms import ADMIN, USER, eventually
from servers.ranger_kms import RangerKmsServer, start_ranger_kms

from pyspark_iceberg_crypto import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    HadoopKms,
    KeyNotFoundError,
    NotSupportedError,
)

pytestmark = pytest.mark.nightly

KEK = b"0123456789abcdef"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RangerKmsServer]:
    started = start_ranger_kms(tmp_path_factory.mktemp("ranger") / "kms")
    yield started
    started.stop()


@pytest.fixture
def client(jvm: Jvm, server: RangerKmsServer) -> Client:
    return make(jvm, server, USER)


def uri(server: RangerKmsServer, hosts: str = "127.0.0.1") -> str:
    return f"kms://http@{hosts}:{server.port}/kms"


def make(jvm: Jvm, server: RangerKmsServer, user: str) -> Client:
    return jvm.client(HadoopKms(uri(server), user=user).properties(), raw=True)


def test_a_policy_for_two_operations_is_enough(
    jvm: Jvm, server: RangerKmsServer, admin: HadoopKms, key: str
) -> None:
    """And no more than what is needed: without one of them the error names it."""
    client = make(jvm, server, "etl")
    generate = policy("etl", ["GENERATE_EEK"], f"{key}*")
    decrypt = policy("etl", ["DECRYPT_EEK"], f"{key}*")
    for given, missing in (((), "GENERATE_EEK"), ((generate,), "DECRYPT_EEK")):
        server.allow(*given)
        told = (f"user 'etl' may not {missing}", "User:etl not allowed", f"'{key}'", "by a policy")
        eventually(
            lambda told=told: refused(AccessDeniedError, lambda: client.wrap(KEK, key), *told)
        )
    server.allow(generate, decrypt)
    eventually(lambda: client.unwrap(client.wrap(KEK, key), key))
    other = admin.create_key(f"other-{uuid.uuid4().hex[:8]}").key_id
    refused(AccessDeniedError, lambda: client.wrap(KEK, other), f"'{other}'", "by a policy")
    etl = HadoopKms(uri(server), user="etl")
    for call in (etl.list_keys, lambda: etl.create_key("mine"), lambda: etl.rotate_key(key)):
        refused(AccessDeniedError, call, "user 'etl' may not", "policy of Ranger's")


def test_nobody_sees_a_key(server: RangerKmsServer, key: str) -> None:
    made = server.ask("POST", "keys", {"name": f"{key}-seen", "length": 256})[1]
    assert (made["versionName"], made["material"]) == (f"{key}-seen@0", None)
    for user in (ADMIN, USER):
        assert server.ask("GET", f"keyversion/{key}@0", user=user)[0] == 403


def test_a_second_server_that_cannot_be_told_of_a_rolled_key(
    server: RangerKmsServer, key: str
) -> None:
    """Ranger KMS 2.0 takes the request for the roll of another key."""
    both = HadoopKms(uri(server, "127.0.0.1;localhost"), user=ADMIN)
    told = ("'localhost'", f"{key!r} was rotated", "do not rotate it again")
    refused(NotSupportedError, lambda: both.rotate_key(key), *told)
    assert both.describe_key(key).versions == 2


@pytest.mark.parametrize("name", ["sales.eu", "sales--eu", "_sales"])
def test_names_that_it_does_not_take(admin: HadoopKms, client: Client, name: str) -> None:
    told = (f"'{name}'", "should start with alpha/numeric letters")
    refused(ConfigurationError, lambda: admin.create_key(name), *told)
    refused(KeyNotFoundError, lambda: client.wrap(KEK, name), f"'{name}'")


def test_a_name_in_capitals(admin: HadoopKms, client: Client, key: str) -> None:
    """Is the same key to Ranger KMS, but what it wrapped belongs to the key id as it was written."""
    capitals = key.upper()
    refused(ConfigurationError, lambda: admin.create_key(capitals), capitals, "already")
    blob = client.wrap(KEK, capitals)
    assert client.unwrap(blob, capitals) == KEK
    refused(BadWrappedKeyError, lambda: client.unwrap(blob, key), f"'{key}'")
