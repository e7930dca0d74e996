"""The seven KMSs as tests of all of them use them: a server each, a proxy that counts and fails, and what is secret."""

import json
import secrets
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doubles.faults import FaultProxy

from harness.files import secret_file
from harness.keystore import QUICK

if TYPE_CHECKING:
    from servers.aws import AwsServer
    from servers.hadoop_kms import HadoopKmsServer
    from servers.ranger_kms import RangerKmsServer


@dataclass
class Backend:
    """A running KMS.

    Attributes:
        kind: its encryption.kms-type.
        kms: the name of its Python class.
        fields: what Spark's side gives to that class.
        key: what create_key is given.
        admin: the fields of the one who sets keys up, where they differ from Spark's.
        environment: variables that every process needs.
        java: options that every JVM needs.
        options: further catalog properties.
        secrets: what must not be seen anywhere.
        calls: how many wraps and unwraps the server has answered; None where nobody can count.
        tables: the UUIDs of the tables that these were for, where the KMS is told.
        proxy: stands before the server, where there is one.
        disable: disables a key, or enables it again.
        delete: deletes a key.
        deny: takes the right to use keys from Spark's side, or gives it back.
        stop: ends the server.
    """

    kind: str
    kms: str
    fields: dict[str, Any]
    key: str
    admin: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    java: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    calls: Callable[[], int] | None = None
    tables: Callable[[], list[str]] | None = None
    proxy: FaultProxy | None = None
    disable: Callable[[str, bool], Any] | None = None
    delete: Callable[[str], Any] | None = None
    deny: Callable[[bool], Any] | None = None
    stop: Callable[[], None] = lambda: None


def start(kind: str, folder: Path) -> Backend:
    """Starts a KMS.

    Args:
        kind: as in encryption.kms-type; or "ministack", AWS once more, or "ranger", Ranger's Hadoop KMS.
        folder: gets its files.
    """
    folder.mkdir(parents=True)
    return _STARTS[kind](folder)


def _keystore(folder: Path) -> Backend:
    from pyspark_iceberg_crypto import Keystore

    password = _secret_file(folder / "password")
    path = folder / "keys.p12"
    Keystore.create(path, keys=["other"], password_file=password)
    fields = {"path": str(path), "password_file": str(password)}

    def delete(key_id: str) -> None:
        command = ["keytool", *QUICK, "-delete", "-alias", key_id, "-keystore", str(path)]
        command += ["-storepass:file", str(password)]
        subprocess.run(command, check=True, capture_output=True)

    return Backend(
        "keystore", "Keystore", fields, "lake", secrets=[password.read_text()], delete=delete
    )


def _vault(folder: Path) -> Backend:
    from servers.vault import key_calls, start_vault

    server = start_vault(folder / "log")
    proxy = FaultProxy(server.port).start()
    hcl = "\n".join(
        f'path "transit/{verb}/lake*" {{ capabilities = ["update"] }}'
        for verb in ("encrypt", "decrypt")
    )
    policy = server.make_policy(hcl)
    token = _secret_file(folder / "token", server.make_token(policy))
    root = _secret_file(folder / "root-token", server.root)
    return Backend(
        "vault",
        "Vault",
        {"address": proxy.url, "token_file": str(token)},
        "lake",
        admin={"token_file": str(root)},
        secrets=[token.read_text(), root.read_text()],
        calls=lambda: key_calls(proxy),
        proxy=proxy,
        delete=server.delete_key,
        deny=lambda denied: server.write_policy(policy, "# nothing" if denied else hcl),
        stop=_both(proxy.stop, server.stop),
    )


def _aws(folder: Path) -> Backend:
    from servers.aws import catalog_on_s3, start_moto

    server = start_moto(folder / "log")
    return _aws_of(server, folder, catalog_on_s3(server, "lake"))


def _ministack(folder: Path) -> Backend:
    """Where keys can be disabled, but wrapped keys not be tampered with."""
    from servers.aws import start_ministack

    server = start_ministack(folder / "log")
    kms = server.boto("kms")
    backend = _aws_of(server, folder, {})
    backend.disable = lambda key_id, disabled: (kms.disable_key if disabled else kms.enable_key)(
        KeyId=key_id
    )
    backend.delete = lambda key_id: kms.schedule_key_deletion(KeyId=key_id, PendingWindowInDays=7)
    return backend


def _aws_of(server: "AwsServer", folder: Path, options: dict[str, str]) -> Backend:
    from servers.aws import REGION

    proxy = FaultProxy(server.port).start()
    secret = secrets.token_hex(20)
    credentials = secret_file(
        folder / "credentials",
        f"[default]\naws_access_key_id = AKIAONLYFORTESTS0001\naws_secret_access_key = {secret}\n",
    )
    return Backend(
        "aws",
        "AwsKms",
        {
            "region": REGION,
            "endpoint": proxy.url,
            "encryption_context": {"lake": "tests", "table": "{table-uuid}"},
        },
        "lake",
        # Not AWS_SECRET_ACCESS_KEY: Spark copies that into the Hadoop configuration, which travels.
        environment={
            "AWS_SHARED_CREDENTIALS_FILE": str(credentials),
            "AWS_EC2_METADATA_DISABLED": "true",
        },
        options=options,
        secrets=[secret],
        calls=lambda: sum(
            h.get("x-amz-target") in ("TrentService.Encrypt", "TrentService.Decrypt")
            for h in proxy.headers
        ),
        tables=lambda: [
            json.loads(body)["EncryptionContext"]["table"]
            for body in proxy.bodies
            if b"EncryptionContext" in body
        ],
        proxy=proxy,
        stop=_both(proxy.stop, server.stop),
    )


def _gcp(folder: Path) -> Backend:
    from doubles.gcp import RING, GcpKmsDouble
    from doubles.gcp_login import OWNER

    double = GcpKmsDouble().start()
    proxy = FaultProxy(double.port).start()
    account = double.login.service_account(folder / "account.json")
    private = account.read_text().split("-----")[2].replace("\\n", "")
    return Backend(
        "gcp",
        "GcpKms",
        {
            "endpoint": proxy.url,
            "credentials_file": str(account),
            **dict(zip(("project", "location", "key_ring"), RING.split("/")[1::2], strict=True)),
        },
        f"{RING}/cryptoKeys/lake",
        secrets=[private[:64], private[64:128]],
        calls=lambda: sum(r.endswith((":encrypt", ":decrypt")) for r in proxy.requests),
        proxy=proxy,
        disable=lambda key_id, disabled: setattr(
            double.version(key_id), "state", "DISABLED" if disabled else "ENABLED"
        ),
        delete=lambda key_id: setattr(double.version(key_id), "state", "DESTROYED"),
        deny=lambda denied: (
            double.granted.update({OWNER: set()}) if denied else double.granted.pop(OWNER)
        ),
        stop=_both(proxy.stop, double.stop),
    )


def _azure(folder: Path) -> Backend:
    from doubles.azure import VAULT
    from doubles.azure_login import CLIENT_SECRET
    from doubles.azure_world import SCOPE, start_azure

    world = start_azure(folder)
    return Backend(
        "azure",
        "AzureKeyVault",
        {"vault_url": world.plain_url, "token_scope": SCOPE},
        "lake",
        environment=world.as_application("localhost"),
        java=world.trusting_options,
        options={"encryption.metadata-authentication": "off"},  # its key is an RSA key
        secrets=[CLIENT_SECRET],
        # Only what was answered: after a rotation the newest version is tried first, in vain.
        calls=lambda: sum(
            ("/wrapkey" in request or "/unwrapkey" in request) and request.endswith(" 200")
            for request in world.double.requests
        ),
        proxy=world.proxy,
        disable=lambda key_id, disabled: setattr(
            world.double.keys[VAULT, key_id].current, "enabled", not disabled
        ),
        delete=lambda key_id: setattr(
            world.double.keys[VAULT, key_id], "deleted", int(time.time())
        ),
        deny=lambda denied: (
            world.double.denied.update(dict.fromkeys(("wrapkey", "unwrapkey"), "ForbiddenByRbac"))
            if denied
            else world.double.denied.clear()
        ),
        stop=world.stop,
    )


def _pkcs11(folder: Path) -> Backend:
    from servers.softhsm import SoftHsm

    hsm = SoftHsm(folder / "softhsm2.conf")
    pin = _secret_file(folder / "pin")
    hsm.make_token("lake", pin.read_text())
    return Backend(
        "pkcs11",
        "Pkcs11",
        {"library": str(hsm.library), "token_label": "lake", "pin_file": str(pin)},
        "lake",
        environment={"SOFTHSM2_CONF": str(hsm.configuration)},
        secrets=[pin.read_text()],
        delete=lambda key_id: hsm.delete_key("lake", key_id, pin.read_text()),
    )


def _hadoop(folder: Path) -> Backend:
    from servers.hadoop_kms import start_hadoop_kms

    return _hadoop_of(start_hadoop_kms(folder / "server"))


def _ranger(folder: Path) -> Backend:
    from servers.ranger_kms import start_ranger_kms

    return _hadoop_of(start_ranger_kms(folder / "server"))


def _hadoop_of(server: "HadoopKmsServer | RangerKmsServer") -> Backend:
    from servers.hadoop_kms import ADMIN, USER

    proxy = FaultProxy(server.port).start()
    return Backend(
        "hadoop",
        "HadoopKms",
        {"uri": f"kms://http@127.0.0.1:{proxy.port}/kms", "user": USER},
        "lake",
        admin={"user": ADMIN},
        # A wrap is two requests, of which this is the second.
        calls=lambda: sum("eek_op=decrypt" in request for request in proxy.requests),
        proxy=proxy,
        delete=server.delete_key,
        deny=server.deny,
        stop=_both(proxy.stop, server.stop),
    )


_STARTS: dict[str, Callable[[Path], Backend]] = {
    "keystore": _keystore,
    "vault": _vault,
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
    "pkcs11": _pkcs11,
    "hadoop": _hadoop,
}
KINDS = tuple(_STARTS)
_STARTS |= {"ministack": _ministack, "ranger": _ranger}


def _secret_file(path: Path, secret: str | None = None) -> Path:
    """Writes a secret, a random one unless given, into a private file."""
    return secret_file(path, secret or secrets.token_urlsafe(24))


def _both(*stops: Callable[[], None]) -> Callable[[], None]:
    def stop() -> None:
        for each in stops:
            each()

    return stop
