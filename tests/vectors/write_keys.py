"""Writes golden wrapped keys with a build of this project: `python write_keys.py BUILD`.

ICEBERG_CRYPTO_TEST_CLASSES names its jar, and BUILD the build, the short id of its commit. The master keys are in
master-keys.json and keys.p12. README.md says what is in the files.
"""

import base64
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, str(Path(__file__).parents[1]))  # for harness, servers and doubles

from doubles.azure import HSM, AzureDouble
from doubles.azure_keys import Key, Version
from doubles.azure_world import start_azure
from doubles.gcp import GcpKmsDouble
from harness.jvm import Jvm, start_jvm
from servers.hadoop_kms import ADMIN, USER, HadoopKmsServer, start_hadoop_kms
from servers.softhsm import SoftHsm, client_properties
from servers.vault import start_vault
from vectors.write_tables import copy_keys

HERE = Path(__file__).parent
NAME = "golden"
KEK = bytes(range(16))
TABLE = "6a2b2f5e-6b1c-4d3a-9a51-0c8de4a7f0aa"
OPS = ["wrapKey", "unwrapKey"]

WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "keystore": ("keystore", {}),
    "vault": ("vault", {}),
    "pkcs11": ("pkcs11", {}),
    "gcp": ("gcp", {}),
    "gcp, bound to a table": (
        "gcp",
        {"encryption.kms.gcp.additional-authenticated-data": "table-uuid"},
    ),
    "azure, RSA": ("azure", {}),
    "azure, RSA, with the key's version": (
        "azure",
        {"encryption.kms.azure.store-key-version": "true"},
    ),
    "azure, AES": ("azure-hsm", {}),
    "hadoop": ("hadoop", {}),
}
"""How keys are wrapped: by which client of `kms_clients`, with which further properties."""


@dataclass(frozen=True)
class Servers:
    """The KMSs with the golden master keys.

    Attributes:
        clients: for each KMS a client's properties, and the id of the golden master key in it.
        environment: variables that their clients need.
        java: options that a JVM needs.
    """

    clients: dict[str, tuple[dict[str, str], str]]
    environment: dict[str, str]
    java: list[str]


@contextmanager
def kms_clients(folder: Path, *, hadoop: bool = True) -> Iterator[tuple[Jvm, Servers]]:
    """A JVM, and the KMSs. Hadoop KMS takes seconds to start, and may be left out."""
    with kms_servers(folder, hadoop=hadoop) as servers:
        jvm = start_jvm(folder / "log", servers.environment, servers.java)
        try:
            yield jvm, servers
        finally:
            jvm.stop()


@contextmanager
def kms_servers(folder: Path, *, hadoop: bool = True) -> Iterator[Servers]:
    """The KMSs alone."""
    masters = json.loads((HERE / "master-keys.json").read_text())
    copy_keys(folder)
    with ExitStack() as stack:
        vault = start_vault(folder / "vault.log")
        stack.callback(vault.stop)
        vault.call("POST", f"transit/restore/{NAME}", {"backup": masters["vault"]})
        hsm = SoftHsm(folder / "softhsm2.conf")
        hsm.make_token(NAME)
        (folder / "key").write_bytes(bytes.fromhex(masters["pkcs11"]))
        written = ("--write-object", str(folder / "key"), "--type", "secrkey", "--label", NAME)
        access = ("--key-type", "AES:32", "--private", "--sensitive", "--usage-decrypt")
        hsm.tool(NAME, *written, *access)
        google = GcpKmsDouble().start()
        stack.callback(google.stop)
        azure = start_azure(folder)
        stack.callback(azure.stop)
        put_azure_keys(azure.double, masters)
        clients = {}
        if hadoop:
            server = start_hadoop_kms(folder / "hadoop")
            stack.callback(server.stop)
            put_hadoop_key(server, masters)
            clients["hadoop"] = (hadoop_properties(server), NAME)
        yield Servers(
            clients
            | {
                "keystore": (keystore_properties(folder), "k1"),
                "vault": (vault.token_login(folder / "token", vault.driver_policy(NAME)), NAME),
                "pkcs11": (client_properties(library=hsm.library, token_label=NAME), NAME),
                "gcp": (gcp_properties(google, folder), put_gcp_key(google, masters)),
                "azure": (azure_properties(azure.url()), NAME),
                "azure-hsm": (azure_properties(azure.url(HSM), "A256KW"), NAME),
            },
            {"SOFTHSM2_CONF": str(hsm.configuration), **azure.as_application()},
            azure.java_options,
        )


def keystore_properties(folder: Path) -> dict[str, str]:
    return {
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(folder / "keys.p12"),
        "encryption.kms.keystore.password-file": str(folder / "keys.password"),
    }


def gcp_properties(google: GcpKmsDouble, folder: Path) -> dict[str, str]:
    return {
        "encryption.kms-type": "gcp",
        "encryption.kms.gcp.endpoint": google.url,
        "encryption.kms.gcp.credentials-file": str(
            google.login.service_account(folder / "account.json")
        ),
    }


def put_gcp_key(google: GcpKmsDouble, masters: dict[str, Any]) -> str:
    name = google.add_key(NAME)
    version = google.version(name)
    version.id = masters["gcp"]["id"]
    version._aes = AESGCM(bytes.fromhex(masters["gcp"]["aes"]))
    return name


def azure_properties(url: str, algorithm: str = "RSA-OAEP-256") -> dict[str, str]:
    return {
        "encryption.kms-type": "azure",
        "encryption.kms.azure.vault-url": url,
        "encryption.kms.azure.algorithm": algorithm,
    }


def put_azure_keys(azure: AzureDouble, masters: dict[str, Any]) -> None:
    given = masters["azure"]
    secret = serialization.load_pem_private_key(given["rsa"].encode(), None)
    azure.add_key(NAME).versions = [Version(given["id"], "RSA", secret, OPS)]
    aes = bytes.fromhex(given["aes"])
    azure.keys[HSM, NAME] = Key(NAME, [Version(given["id"], "oct-HSM", aes, OPS)])


def hadoop_properties(server: HadoopKmsServer) -> dict[str, str]:
    return {
        "encryption.kms-type": "hadoop",
        "encryption.kms.hadoop.uri": f"kms://http@127.0.0.1:{server.port}/kms",
        "encryption.kms.hadoop.user": USER,
    }


def put_hadoop_key(server: HadoopKmsServer, masters: dict[str, Any]) -> None:
    """Made of bytes from outside, which nobody may do until its lists say so."""
    material = base64.b64encode(bytes.fromhex(masters["hadoop"])).decode()
    given = {"name": NAME, "cipher": "AES/CTR/NoPadding", "length": 256, "material": material}
    server.allow({"hadoop.kms.acl.SET_KEY_MATERIAL": ADMIN})
    end = time.monotonic() + 10
    while (answer := server.ask("POST", "keys", given))[0] == 403:
        assert time.monotonic() < end, answer
        time.sleep(0.1)
    assert answer[0] == 201, answer


def main() -> None:
    (build,) = sys.argv[1:]
    written = []
    with tempfile.TemporaryDirectory() as name, kms_clients(Path(name)) as (jvm, servers):
        for way, (kms, further) in WAYS.items():
            properties, key_id = servers.clients[kms]
            client = jvm.client(properties | further, raw=True)
            if "bound" in way:
                client = client.of_table(TABLE)
            written.append({"way": way, "wrapped": client.wrap(KEK, key_id).hex()})
    (HERE / f"keys-{build}.json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
