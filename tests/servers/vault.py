"""HashiCorp Vault: the real core, which `make setup` built from source, in a process of its own on 127.0.0.1."""

import base64
import json
import re
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from ssl import create_default_context
from typing import Any

from doubles.faults import FaultProxy
from doubles.service_accounts import (
    ACCOUNT,
    AUDIENCE,
    ISSUER,
    NAMESPACE,
    SUBJECT,
    Issuer,
    TokenReviews,
)
from harness.files import secret_file
from harness.programs import START_SECONDS
from harness.tls import ClientCertificate, TestAuthority
from harness.used import used

from pyspark_iceberg_crypto.kms import Vault
from servers.process import Process, end, start_server

BUILD = Path(__file__).parents[2] / "dev" / "go-server.sh"


class VaultError(Exception):
    """Vault's answer to a test's own request was an error."""


@dataclass
class VaultServer:
    """A running Vault, with transit keys at `transit/` and AppRole at `auth/approle`.

    Attributes:
        process: ends when its standard input does; `stop` does that.
        address: such as http://127.0.0.1:8200.
        ca_file: PEM of the authority of its certificate; None without TLS.
        root: a token that may do everything.
        unseal_key: the one key that unseals it.
    """

    process: Process
    address: str
    ca_file: Path | None = None
    root: str = ""
    unseal_key: str = ""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, token: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Asks Vault, and returns the status and the answer, whatever they are."""
        host = self.address.partition("://")[2]
        connection = (
            HTTPSConnection(host, context=create_default_context(cafile=str(self.ca_file)))
            if self.ca_file
            else HTTPConnection(host)
        )
        try:
            connection.request(
                method,
                f"/v1/{path}",
                None if body is None else json.dumps(body),
                {"X-Vault-Token": token} if token else {},
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Asks Vault as root; an answer that is an error is one here."""
        status, answer = self.request(method, path, body, self.root)
        if status >= 400:
            raise VaultError(f"{method} {path}: {status} {answer.get('errors')}")
        return answer

    def initialize(self) -> None:
        """Makes the one unseal key and the root token of a new Vault. It stays sealed."""
        made = self.call("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
        self.root, self.unseal_key = made["root_token"], made["keys"][0]

    def unseal(self) -> None:
        self.call("PUT", "sys/unseal", {"key": self.unseal_key})
        deadline = time.monotonic() + START_SECONDS
        while self.request("GET", "sys/health")[0] != 200:
            assert time.monotonic() < deadline, "Vault is not active"
            time.sleep(0.05)

    def seal(self) -> None:
        self.call("PUT", "sys/seal")

    def enable(self) -> None:
        """Mounts what the tests use."""
        self.call("POST", "sys/mounts/transit", {"type": "transit"})
        self.call("POST", "sys/auth/approle", {"type": "approle"})

    def make_key(self, name: str | None = None, mount: str = "transit", **parameters: Any) -> str:
        """A transit key; without a name one that no test had before. `derived=True`, `type=...`"""
        name = name or f"key-{uuid.uuid4().hex[:12]}"
        self.call("POST", f"{mount}/keys/{name}", parameters)
        return name

    def read_key(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"transit/keys/{name}")["data"]
        return found

    def key_names(self) -> list[str]:
        names: list[str] = self.call("LIST", "transit/keys")["data"]["keys"]
        return names

    def rotate_key(self, name: str) -> None:
        self.call("POST", f"transit/keys/{name}/rotate")

    def configure_key(self, name: str, **parameters: Any) -> None:
        """`min_decryption_version=2`, `deletion_allowed=True`"""
        self.call("POST", f"transit/keys/{name}/config", parameters)

    def delete_key(self, name: str) -> None:
        self.configure_key(name, deletion_allowed=True)
        self.call("DELETE", f"transit/keys/{name}")

    def make_policy(self, hcl: str) -> str:
        """A policy of this text; returns its name."""
        name = f"policy-{uuid.uuid4().hex[:12]}"
        self.write_policy(name, hcl)
        return name

    def write_policy(self, name: str, hcl: str) -> None:
        self.call("PUT", f"sys/policies/acl/{name}", {"policy": hcl})

    def make_token(self, *policies: str, **parameters: Any) -> str:
        """A token with these policies and Vault's `default`. `ttl="3s"`, `no_default_policy=True`"""
        given = {"policies": policies or ["default"], "no_parent": True, "ttl": "1h", **parameters}
        token: str = self.call("POST", "auth/token/create", given)["auth"]["client_token"]
        return token

    def token_login(
        self, file: Path, *policies: str, address: str = "", **parameters: Any
    ) -> dict[str, str]:
        """Properties of a client with a token of these policies, which is put into the file.

        Args:
            file: gets the token.
            policies: by name; see `driver_policy`.
            address: of a proxy before this Vault.
            parameters: for `make_token`.
        """
        write_secret(file, self.make_token(*policies, **parameters))
        return {
            "encryption.kms-type": "vault",
            "encryption.kms.vault.address": address or self.address,
            "encryption.kms.vault.token-file": str(file),
        }

    def approle_login(
        self, file: Path, *policies: str, address: str = "", **parameters: Any
    ) -> dict[str, str]:
        """Properties of a client with a role of these policies, its secret id in the file; see `token_login`."""
        role_id, secret_id = self.make_approle(*policies, **parameters)
        write_secret(file, secret_id)
        return {
            "encryption.kms-type": "vault",
            "encryption.kms.vault.address": address or self.address,
            "encryption.kms.vault.role-id": role_id,
            "encryption.kms.vault.secret-id-file": str(file),
        }

    def enable_kubernetes(self, reviews: TokenReviews, ca_file: Path) -> None:
        """Has `auth/kubernetes` ask this API server about service accounts' tokens."""
        self.call("POST", "sys/auth/kubernetes", {"type": "kubernetes"})
        config = {"kubernetes_host": reviews.url, "kubernetes_ca_cert": ca_file.read_text()}
        self.call("POST", "auth/kubernetes/config", {**config, "disable_local_ca_jwt": True})

    def enable_jwt(self, issuer: Issuer) -> None:
        """Has `auth/jwt` trust this issuer's key."""
        self.call("POST", "sys/auth/jwt", {"type": "jwt"})
        keys = {"jwt_validation_pubkeys": [issuer.public_key], "bound_issuer": ISSUER}
        self.call("POST", "auth/jwt/config", keys)

    def kubernetes_login(
        self, file: Path, *policies: str, address: str = "", **parameters: Any
    ) -> dict[str, str]:
        """Properties of a client with a role of these policies, its service account's token in the file."""
        role = f"role-{uuid.uuid4().hex[:12]}"
        bound = {
            "bound_service_account_names": [ACCOUNT],
            "bound_service_account_namespaces": [NAMESPACE],
            "audience": AUDIENCE,
        }
        given = {**bound, "token_policies": policies, **parameters}
        self.call("POST", f"auth/kubernetes/role/{role}", given)
        return {
            "encryption.kms-type": "vault",
            "encryption.kms.vault.address": address or self.address,
            "encryption.kms.vault.kubernetes-role": role,
            "encryption.kms.vault.kubernetes-token-file": str(file),
        }

    def jwt_login(
        self, file: Path, *policies: str, address: str = "", **parameters: Any
    ) -> dict[str, str]:
        """Properties of a client with a role of these policies, its JWT in the file."""
        role = f"role-{uuid.uuid4().hex[:12]}"
        bound = {
            "role_type": "jwt",
            "user_claim": "sub",
            "bound_subject": SUBJECT,
            "bound_audiences": [AUDIENCE],
        }
        given = {**bound, "token_policies": policies, **parameters}
        self.call("POST", f"auth/jwt/role/{role}", given)
        return {
            "encryption.kms-type": "vault",
            "encryption.kms.vault.address": address or self.address,
            "encryption.kms.vault.jwt-role": role,
            "encryption.kms.vault.jwt-file": str(file),
        }

    def certificate_login(
        self, certificate: ClientCertificate, *policies: str, **parameters: Any
    ) -> dict[str, str]:
        """Properties of a client with a role of these policies for this certificate, over TLS."""
        if "cert/" not in self.call("GET", "sys/auth")["data"]:
            self.call("POST", "sys/auth/cert", {"type": "cert"})
        role = f"role-{uuid.uuid4().hex[:12]}"
        given = {"certificate": certificate.file.read_text(), "token_policies": policies}
        self.call("POST", f"auth/cert/certs/{role}", {**given, **parameters})
        return {
            "encryption.kms-type": "vault",
            "encryption.kms.vault.address": self.address,
            "encryption.kms.vault.ca-file": str(self.ca_file),
            "encryption.kms.vault.cert-role": role,
            "encryption.kms.vault.cert-file": str(certificate.file),
            "encryption.kms.vault.cert-key-file": str(certificate.key_file),
        }

    def driver_policy(self, *keys: str) -> str:
        """The policy that our helper prints for these keys, in Vault; returns its name."""
        return self.make_policy(Vault(self.address, token_env="UNUSED").driver_policy(keys))

    def tokens(self) -> list[str]:
        """The accessors of all tokens."""
        found: list[str] = self.call("LIST", "auth/token/accessors")["data"]["keys"]
        return found

    def revoke(self, token: str) -> None:
        self.call("POST", "auth/token/revoke", {"token": token})

    def make_approle(self, *policies: str, **parameters: Any) -> tuple[str, str]:
        """A role with these policies: its role id and a secret id. `token_ttl="3s"`"""
        role = f"auth/approle/role/role-{uuid.uuid4().hex[:12]}"
        self.call("POST", role, {"token_policies": policies, **parameters})
        role_id = self.call("GET", f"{role}/role-id")["data"]["role_id"]
        return role_id, self.call("POST", f"{role}/secret-id")["data"]["secret_id"]

    def stop(self) -> None:
        end(self.process)


def key_calls(proxy: FaultProxy) -> int:
    """How many wraps and unwraps a proxy saw, without the client's own trials before its first wrap."""
    counted = 0
    for request, body in zip(proxy.requests, proxy.bodies, strict=True):
        if found := re.search(r"/(?:encrypt|decrypt)/([\w.-]+)$", request):
            data = json.loads(body)
            own_id = base64.b64encode(found[1].encode()).decode() == data["associated_data"]
            counted += own_id and data.get("ciphertext") != "vault:v1:probe"
    return counted


def write_secret(file: Path, secret: str) -> None:
    secret_file(file, secret + "\n")


def start_vault(
    log: Path, authority: TestAuthority | None = None, *, ready: bool = True
) -> VaultServer:
    """Starts a new, empty Vault.

    Args:
        log: gets what Vault writes to its log.
        authority: serve TLS with its certificate.
        ready: initialised, unsealed, with transit and AppRole. Otherwise as a new Vault is.
    """
    command = [str(vault_binary()), "-log", "info"]
    if authority:
        command += ["-tls-cert", str(authority.chain), "-tls-key", str(authority.chain)]
    process, host = start_server(command, log)
    server = VaultServer(
        process,
        f"{'https' if authority else 'http'}://{host}",
        authority.ca_file if authority else None,
    )
    if ready:
        server.initialize()
        server.unseal()
        server.enable()
        used("Vault", server.call("GET", "sys/health")["version"])
    return server


def vault_binary() -> Path:
    """The program that `make setup` built from tests/servers/vault, outside of this tree."""
    told = subprocess.run([BUILD, "vault", "path"], check=True, capture_output=True, text=True)
    program = Path(told.stdout.strip())
    if not program.exists():
        raise FileNotFoundError(
            f"no Vault {program}: run `make setup`, which builds it once, in minutes"
        )
    return program
