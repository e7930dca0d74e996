"""HashiCorp Vault's transit engine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._secrets import headers_unshown, require_private
from pyspark_iceberg_crypto.kms.vault._login import (
    SERVICE_ACCOUNT_TOKEN,
    check_login,
    login_of,
    read_secret,
)

KEY_TYPES = ("aes256-gcm96", "aes128-gcm96", "chacha20-poly1305")
TIMEOUT_SECONDS = 30

_NAME = re.compile(r"\w(([\w.-]+)?\w)?", re.ASCII)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PREFIX = "encryption.kms.vault"


@dataclass(frozen=True)
class Vault(Kms):
    """Keys in a transit engine of HashiCorp Vault. They never leave it.

    It logs in with a token, or by AppRole, Kubernetes, JWT or TLS certificate. Spark needs only a login with
    the rights of ``driver_policy``; to make, list, describe and rotate keys, use a Vault object with a login that may.

    Attributes:
        address: Vault's URL, such as https://vault.example.com:8200.
        token_env: the name of the environment variable that holds the token.
        token_file: instead, a file that holds it; read again when it changes.
        role_id: instead of a token, the role id of an AppRole.
        secret_id_env: the name of the environment variable that holds the AppRole's secret id.
        secret_id_file: instead, a file that holds it.
        approle_mount: the path of the AppRole login below auth/.
        kubernetes_role: instead, the role to log in as with the token of the pod's service account.
        kubernetes_token_file: where that token is; without it where Kubernetes puts it. Read at each login.
        kubernetes_mount: the path of the Kubernetes login below auth/.
        jwt_role: instead, the role to log in as with a JWT.
        jwt_env: the name of the environment variable that holds the JWT.
        jwt_file: instead, a file that holds it; read at each login.
        jwt_mount: the path of the JWT login below auth/.
        cert_file: instead, a PEM file of the client's TLS certificate (and its chain); read when it changes.
        cert_key_file: a PEM file of its private key, PKCS 8 without a password.
        cert_role: the role of the certificate; without it Vault looks for one.
        cert_mount: the path of the TLS certificate login below auth/.
        transit_mount: the path of the transit engine.
        namespace: a namespace of Vault Enterprise.
        ca_file: a PEM file of the authorities to trust; without it Java's own (Python: its own).
        allow_http: allow an http address other than this machine's own.

    Raises:
        ConfigurationError: the address is no URL, or not exactly one login is given.
    """

    address: str
    token_env: str | None = None
    token_file: str | os.PathLike[str] | None = None
    role_id: str | None = None
    secret_id_env: str | None = None
    secret_id_file: str | os.PathLike[str] | None = None
    approle_mount: str = "approle"
    kubernetes_role: str | None = None
    kubernetes_token_file: str | os.PathLike[str] | None = None
    kubernetes_mount: str = "kubernetes"
    jwt_role: str | None = None
    jwt_env: str | None = None
    jwt_file: str | os.PathLike[str] | None = None
    jwt_mount: str = "jwt"
    cert_file: str | os.PathLike[str] | None = None
    cert_key_file: str | os.PathLike[str] | None = None
    cert_role: str | None = None
    cert_mount: str = "cert"
    transit_mount: str = "transit"
    namespace: str | None = None
    ca_file: str | os.PathLike[str] | None = None
    allow_http: bool = False

    extra: ClassVar[str] = "vault"
    defaults: ClassVar[Mapping[str, str]] = {"kubernetes-token-file": SERVICE_ACCOUNT_TOKEN}

    def __post_init__(self) -> None:
        url = _address.split(self.address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ConfigurationError(
                f"{self.address!r} is not the URL of a Vault", "https://vault.example.com:8200"
            )
        if url.scheme == "http" and not self.allow_http and url.hostname not in _LOOPBACK:
            raise ConfigurationError(
                f"http would send tokens and keys to {url.hostname} in plaintext",
                "use https, or allow_http=True if something else encrypts the connection",
            )
        check_login(self, url.scheme)

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this Vault. None of them is a secret."""
        given = {
            "address": self.address,
            "token-env": self.token_env,
            "token-file": _absolute(self.token_file),
            "role-id": self.role_id,
            "secret-id-env": self.secret_id_env,
            "secret-id-file": _absolute(self.secret_id_file),
            "approle-mount": self.approle_mount if self.role_id else None,
            "kubernetes-role": self.kubernetes_role,
            "kubernetes-token-file": _absolute(self.kubernetes_token_file),
            "kubernetes-mount": self.kubernetes_mount if self.kubernetes_role else None,
            "jwt-role": self.jwt_role,
            "jwt-env": self.jwt_env,
            "jwt-file": _absolute(self.jwt_file),
            "jwt-mount": self.jwt_mount if self.jwt_role else None,
            "cert-file": _absolute(self.cert_file),
            "cert-key-file": _absolute(self.cert_key_file),
            "cert-role": self.cert_role,
            "cert-mount": self.cert_mount if self.cert_file else None,
            "transit-mount": self.transit_mount,
            "namespace": self.namespace,
            "ca-file": _absolute(self.ca_file),
            "allow-http": "true" if self.allow_http else None,
        }
        named = {f"{_PREFIX}.{name}": value for name, value in given.items() if value}
        return {"encryption.kms-type": "vault", **named}

    def create_key(self, name: str, *, key_type: str = KEY_TYPES[0]) -> KeyInfo:
        """Make a transit key that can neither be exported nor deleted. One that exists is left alone.

        Args:
            name: the key's name.
            key_type: aes256-gcm96, aes128-gcm96 or chacha20-poly1305.

        Raises:
            ConfigurationError: the name or type is wrong, the name is taken, there is no transit engine
                at the mount, or hvac is not installed.
            AccessDeniedError: the login failed, or may not create keys.
            KmsUnavailableError: Vault cannot be reached, or is sealed.
        """
        _check_name(name)
        if key_type not in KEY_TYPES:
            raise ConfigurationError(
                f"a key of type {key_type!r} cannot wrap keys",
                f"key_type is {', '.join(KEY_TYPES)}",
            )
        with self._transit(f"make key {name!r}") as transit:
            if name in self._names(transit):
                raise ConfigurationError(
                    f"{self} has a key {name!r} already",
                    "choose another name; describe_key tells what this one is",
                )
            transit.create_key(name, key_type=key_type, mount_point=self.transit_mount)
            return self._info(transit, name)

    def list_keys(self) -> list[KeyInfo]:
        """List the keys of the transit engine, by their names.

        Raises:
            ConfigurationError: there is no transit engine at the mount, or hvac is not installed.
            AccessDeniedError: the login failed, or may not list or read keys.
            KmsUnavailableError: Vault cannot be reached, or is sealed.
        """
        with self._transit("list keys") as transit:
            return [self._info(transit, name) for name in self._names(transit)]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Tell what a key is: its type, its versions, and whether it can wrap keys.

        Raises:
            KeyNotFoundError: there is no such key.
            ConfigurationError: the name is wrong, or hvac is not installed.
            AccessDeniedError: the login failed, or may not read the key.
            KmsUnavailableError: Vault cannot be reached, or is sealed.
        """
        _check_name(key_id)
        with self._transit(f"describe key {key_id!r}") as transit:
            return self._info(transit, key_id)

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key. What older versions wrapped still unwraps.

        Raises:
            KeyNotFoundError: there is no such key.
            ConfigurationError: the name is wrong, or hvac is not installed.
            AccessDeniedError: the login failed, or may not rotate the key.
            KmsUnavailableError: Vault cannot be reached, or is sealed.
        """
        _check_name(key_id)
        with self._transit(f"rotate key {key_id!r}") as transit:
            self._info(transit, key_id)  # Vault answers 400 for more than a missing key
            transit.rotate_key(key_id, mount_point=self.transit_mount)
            return self._info(transit, key_id)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return the Vault policy (HCL) that Spark's driver and executors need for these keys.

        It grants ``update`` only: ``create`` would let a mistyped key id make a new key in Vault.
        """
        if isinstance(key_ids, str) or not key_ids:
            raise ConfigurationError("key_ids must be a list of names", "driver_policy(['sales'])")
        lines = [f"# What Spark needs in Vault at {self.address}: vault policy write spark FILE"]
        for name in key_ids:
            _check_name(name)
            for operation in ("encrypt", "decrypt"):
                path = f"{self.transit_mount.strip('/')}/{operation}/{name}"
                lines.append(f'path "{path}" {{ capabilities = ["update"] }}')
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"Vault at {self.address} ({self.transit_mount})"

    @contextmanager
    def _transit(self, doing: str) -> Iterator[Any]:
        """The transit engine's part of hvac, logged in; hvac's errors become ours."""
        hvac = load("hvac", self.extra)
        with self._typed_errors(hvac, doing):
            client = hvac.Client(
                url=self.address,
                token="",  # not the one of VAULT_TOKEN or ~/.vault-token, which hvac would take
                namespace=self.namespace,
                verify=os.fspath(self.ca_file) if self.ca_file else True,
                cert=self._certificate(),
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,  # requests would take the token to wherever it is sent
            )
            client.session.hooks["response"].append(self._refuse_redirect)
            try:
                client.token = self._token(hvac, client)
                yield client.secrets.transit
            finally:
                client.adapter.close()

    def _token(self, hvac: Any, client: Any) -> str:
        login = login_of(self)
        if login is None:
            return read_secret(self.token_env, self.token_file)
        return login.token(hvac, client, str(self))

    def _certificate(self) -> tuple[str, str] | None:
        if not self.cert_file or not self.cert_key_file:
            return None
        key = Path(self.cert_key_file)
        require_private(key, "the private key")
        return os.fspath(self.cert_file), str(key)

    def _refuse_redirect(self, answer: Any, **_: Any) -> None:
        if 300 <= answer.status_code < 400:
            raise ConfigurationError(
                f"{self} sends on to another address (HTTP {answer.status_code}), where the login will not go",
                "give the address of the active Vault server as address; or is it a proxy that answers?",
            )

    def _names(self, transit: Any) -> list[str]:
        hvac = load("hvac", self.extra)
        try:
            return sorted(transit.list_keys(mount_point=self.transit_mount)["data"]["keys"])
        except hvac.exceptions.InvalidPath as error:
            if "no handler for route" in str(error):
                raise
            return []  # Vault's answer to a list without entries

    def _info(self, transit: Any, name: str) -> KeyInfo:
        hvac = load("hvac", self.extra)
        try:
            data = transit.read_key(name, mount_point=self.transit_mount)["data"]
        except hvac.exceptions.InvalidPath as error:
            if "no handler for route" in str(error):
                raise
            raise KeyNotFoundError(
                f"{self} has no key {name!r}", f"make it: create_key({name!r})"
            ) from error
        return _key_info(data)

    @contextmanager
    def _typed_errors(self, hvac: Any, doing: str) -> Iterator[None]:
        exceptions = hvac.exceptions
        requests = load("requests.exceptions", self.extra)
        where = f"{self} did not {doing}"
        try:
            with headers_unshown(where):
                yield
        except IcebergCryptoError:
            raise
        except requests.SSLError as error:
            raise ConfigurationError(
                f"{where}: its TLS certificate is not trusted: {error}",
                "check the address, and give the authority that signed it as ca_file",
            ) from error
        except requests.RequestException as error:
            raise KmsUnavailableError(
                f"{where}: it cannot be reached: {error}", "check the address and that Vault runs"
            ) from error
        except OSError as error:  # how requests says that there is no such file
            raise ConfigurationError(
                f"{where}: {error}",
                "check that ca_file, cert_file and cert_key_file are PEM files that may be read",
            ) from error
        except exceptions.Forbidden as error:
            if "invalid token" in str(error):
                raise LoginFailedError(
                    f"{where}: login refused: the token expired, was revoked, or is not of this Vault",
                    "log in again (vault login), or make a new token",
                ) from error
            raise AccessDeniedError(
                f"{where}: the login may not: {error}", "log in with a policy that allows it"
            ) from error
        except exceptions.InvalidPath as error:
            raise ConfigurationError(
                f"{where}: there is no transit engine at {self.transit_mount!r}",
                f"vault secrets enable -path={self.transit_mount} transit, or set transit_mount",
            ) from error
        except (exceptions.InvalidRequest, exceptions.UnsupportedOperation) as error:
            raise ConfigurationError(f"{where}: {error}", "see Vault's words") from error
        except (LookupError, TypeError, ValueError) as error:
            raise _not_vault(f"{where}: {self}") from error
        except exceptions.VaultError as error:  # sealed, uninitialised, throttled, broken
            raise KmsUnavailableError(
                f"{where}: {error}", "look at vault status, and try again"
            ) from error


def _not_vault(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} does not answer as a Vault does",
        "check the address: is a proxy or another server there?",
    )


def _key_info(data: dict[str, Any]) -> KeyInfo:
    """Vault's description of a key as ours.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        return _described(data)
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError, AttributeError) as error:
        raise _not_vault("what describes a key") from error


def _described(data: dict[str, Any]) -> KeyInfo:
    latest = int(data["latest_version"])
    oldest = max(1, int(data.get("min_available_version") or 0))
    usable = data["type"] in KEY_TYPES and not data.get("derived")
    detail: dict[str, str] = {
        name: str(data[name]).lower()
        for name in ("min_decryption_version", "derived", "exportable", "deletion_allowed")
        if name in data
    }
    return KeyInfo(
        key_id=data["name"],
        state=ENABLED if usable else "not for wrapping keys",
        algorithm=data["type"],
        version=str(latest),
        versions=latest - oldest + 1,
        created=_created(data.get("keys") or {}),
        detail=detail,
    )


def _created(versions: dict[str, Any]) -> str | None:
    """When the oldest version that Vault tells of was made: seconds since 1970, or a time as text."""
    if not versions:
        return None
    first = versions[min(versions, key=int)]
    if isinstance(first, dict):
        return str(first["creation_time"]) if "creation_time" in first else None
    return datetime.fromtimestamp(int(first), timezone.utc).isoformat()


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name:
        raise ConfigurationError(
            f"{name!r} cannot be the name of a key in Vault",
            "use letters, digits and '_', and '-' and '.' within",
        )


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    return str(Path(path).absolute()) if path else None
