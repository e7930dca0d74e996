"""Transit keys, and Spark's settings for the Vault they are in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._client import require_bare_name
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._secrets import require_private
from pyspark_iceberg_crypto.kms._settings import AnyPath, about, absolute, setting
from pyspark_iceberg_crypto.kms.vault._keys import VaultKeys
from pyspark_iceberg_crypto.kms.vault._login import (
    SERVICE_ACCOUNT_TOKEN,
    check_login,
    token_of,
)

KEY_TYPES = ("aes256-gcm96", "aes128-gcm96", "chacha20-poly1305")
TIMEOUT_SECONDS = 30

_NO_VAULT = "check the address: is a proxy or another server there?"


def _read(error: Exception) -> tuple[Sequence[str], str]:
    said = str(error)
    is_token = type(error).__name__ == "Forbidden" and "invalid token" in said
    return (["token"] if is_token else []), said


ERRORS = ErrorTable(
    [
        Rule(
            "requests.exceptions.SSLError",
            ConfigurationError,
            "check the address, and give the authority that signed it as ca_file",
            "{what}: its TLS certificate is not trusted: {said}",
        ),
        Rule(
            "requests.exceptions.RequestException",
            KmsUnavailableError,
            "check the address and that Vault runs",
            "{what}: it cannot be reached: {said}",
        ),
        Rule(
            "OSError",  # requests: there is no such file
            ConfigurationError,
            "check that ca_file, cert_file and cert_key_file are PEM files that may be read",
        ),
        Rule(
            "token",
            LoginFailedError,
            "log in again (vault login), or make a new token",
            "{what}: login refused: the token expired, was revoked, or is not of this Vault",
        ),
        Rule(
            "hvac.exceptions.Forbidden",
            AccessDeniedError,
            "log in with a policy that allows it",
            "{what}: the login may not: {said}",
        ),
        Rule(
            "hvac.exceptions.InvalidPath",
            ConfigurationError,
            "vault secrets enable -path={mount} transit, or set transit_mount",
            "{what}: there is no transit engine at '{mount}'",
        ),
        Rule("hvac.exceptions.InvalidRequest", ConfigurationError, "check the name and the type"),
        Rule(
            "hvac.exceptions.UnsupportedOperation",
            ConfigurationError,
            "check that a transit engine is at transit_mount",
        ),
        Rule(
            "LookupError TypeError ValueError",
            ConfigurationError,
            _NO_VAULT,
            "{what}: {vault} does not answer as Vault does",
        ),
        Rule(
            "hvac.exceptions.RateLimitExceeded",
            KmsUnavailableError,
            "raise the rate limit (sys/quotas/rate-limit), or send fewer calls",
        ),
        Rule(  # sealed, not initialized, or broken
            "hvac.exceptions.VaultError", KmsUnavailableError, "look at vault status, and try again"
        ),
    ],
    _read,
)


@dataclass(frozen=True)
class Vault(Kms):
    """Keys in a transit engine of HashiCorp Vault. They never leave it.

    It logs in with a token, or by AppRole, Kubernetes, JWT or TLS certificate. Spark needs only a login with
    the rights of ``driver_policy``; to make, list, describe and rotate keys, use a Vault object with a login that may.

    Raises:
        ConfigurationError: the address is not a URL, or not exactly one login is given.
    """

    address: str = field(metadata=about("Vault's URL, such as https://vault.example.com:8200."))
    token_env: str | None = setting("The name of the environment variable that holds the token.")
    token_file: AnyPath | None = setting(
        "Instead, a file that holds it; read again when it changes.", text=absolute
    )
    role_id: str | None = setting("Instead of a token, the role id of an AppRole.")
    secret_id_env: str | None = setting(
        "The name of the environment variable that holds the AppRole's secret id."
    )
    secret_id_file: AnyPath | None = setting("Instead, a file that holds it.", text=absolute)
    approle_mount: str = setting(
        "The path of the AppRole login below auth/.", "approle", needs="role_id"
    )
    kubernetes_role: str | None = setting(
        "Instead, the role to log in as with the token of the pod's service account."
    )
    kubernetes_token_file: AnyPath | None = setting(
        "Where that token is; without it where Kubernetes puts it. Read at each login.",
        text=absolute,
        implied=SERVICE_ACCOUNT_TOKEN,
    )
    kubernetes_mount: str = setting(
        "The path of the Kubernetes login below auth/.", "kubernetes", needs="kubernetes_role"
    )
    jwt_role: str | None = setting("Instead, the role to log in as with a JWT.")
    jwt_env: str | None = setting("The name of the environment variable that holds the JWT.")
    jwt_file: AnyPath | None = setting(
        "Instead, a file that holds it; read at each login.", text=absolute
    )
    jwt_mount: str = setting("The path of the JWT login below auth/.", "jwt", needs="jwt_role")
    cert_file: AnyPath | None = setting(
        "Instead, a PEM file of the client's TLS certificate (and its chain); read when it changes.",
        text=absolute,
    )
    cert_key_file: AnyPath | None = setting(
        "A PEM file of its private key, PKCS 8 without a password.", text=absolute
    )
    cert_role: str | None = setting("The role of the certificate; without it Vault looks for one.")
    cert_mount: str = setting(
        "The path of the TLS certificate login below auth/.", "cert", needs="cert_file"
    )
    transit_mount: str = setting("The path of the transit engine.", "transit")
    wrapped_format: str | None = setting(
        "How wrapped keys are written: header (the default), or bare: Vault's ciphertext alone, for other clients.",
        implied="header",
    )
    read_bare: bool = setting(
        "Read keys that are wrapped so; for a transit key that nothing else uses. Implied by wrapped_format=bare.",
        False,
    )
    namespace: str | None = setting("A namespace of Vault Enterprise.")
    ca_file: AnyPath | None = setting(
        "A PEM file of the authorities to trust; without it Java's own (Python: its own).",
        text=absolute,
    )
    allow_http: bool = setting("Allow an http address other than this machine's own.", False)

    kms_type: ClassVar[str] = "vault"
    extra: ClassVar[str] = "vault"

    def __post_init__(self) -> None:
        url = _address.split(self.address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ConfigurationError(
                f"{self.address!r} is not the URL of a Vault", "https://vault.example.com:8200"
            )
        if not self.allow_http and not _address.is_encrypted(url):
            raise ConfigurationError(
                f"http would send tokens and keys to {url.hostname} in plaintext",
                "use https, or allow_http=True if something else encrypts the connection",
            )
        if self.wrapped_format not in (None, "header", "bare"):
            raise ConfigurationError(
                f"wrapped_format is {self.wrapped_format!r}", "use header (the default) or bare"
            )
        check_login(vars(self), url.scheme)

    def create_key(self, name: str, *, key_type: str = KEY_TYPES[0]) -> KeyInfo:
        """Make a transit key that can neither be exported nor deleted. One that exists is left alone.

        Args:
            name: the key's name.
            key_type: the kind of key: aes256-gcm96, aes128-gcm96 or chacha20-poly1305.
        """
        require_bare_name(name, "Vault")
        if key_type not in KEY_TYPES:
            raise ConfigurationError(
                f"a key of type {key_type!r} cannot wrap keys",
                f"key_type is {', '.join(KEY_TYPES)}",
            )
        with self._transit(f"make key {name!r}") as transit:
            if name in self._names(transit):
                raise ConfigurationError(
                    f"{self} already has a key {name!r}",
                    "choose another name; describe_key shows what this one is",
                )
            transit.create_key(name, key_type=key_type, mount_point=self.transit_mount)
            return self._info(transit, name)

    def list_keys(self) -> list[KeyInfo]:
        """List the keys of the transit engine, by their names."""
        with self._transit("list keys") as transit:
            return [self._info(transit, name) for name in self._names(transit)]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key: its type, its versions, and whether it can wrap keys."""
        require_bare_name(key_id, "Vault")
        with self._transit(f"describe key {key_id!r}") as transit:
            return self._info(transit, key_id)

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key. What older versions wrapped still unwraps."""
        require_bare_name(key_id, "Vault")
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
            require_bare_name(name, "Vault")
            for operation in ("encrypt", "decrypt"):
                path = f"{self.transit_mount.strip('/')}/{operation}/{name}"
                lines.append(f'path "{path}" {{ capabilities = ["update"] }}')
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"Vault at {self.address} ({self.transit_mount})"

    @contextmanager
    def _transit(self, doing: str) -> Iterator[Any]:
        """The transit engine's part of hvac, logged in; hvac's errors become ours."""
        with self._typed(f"{self} did not {doing}"):
            client = self._connect(TIMEOUT_SECONDS)
            try:
                client.token = token_of(vars(self), client, str(self)).token
                yield client.secrets.transit
            finally:
                client.adapter.close()

    def _typed(self, what: str) -> AbstractContextManager[None]:
        load("hvac", self.extra)
        return ERRORS.typed(what, vault=str(self), mount=self.transit_mount)

    def _connect(self, seconds: float) -> Any:
        """Return hvac's client without a login."""
        client = load("hvac", self.extra).Client(
            url=self.address,
            token="",  # not the one of VAULT_TOKEN or ~/.vault-token, which hvac would take
            namespace=self.namespace,
            verify=os.fspath(self.ca_file) if self.ca_file else True,
            cert=self._certificate(),
            timeout=seconds,
            allow_redirects=False,  # requests would take the token to wherever it is sent
        )
        client.session.hooks["response"].append(self._refuse_redirect)
        return client

    def _open(self, call_seconds: float) -> VaultKeys:
        return VaultKeys(self, call_seconds)

    def _certificate(self) -> tuple[str, str] | None:
        if not self.cert_file or not self.cert_key_file:
            return None
        key = Path(self.cert_key_file)
        require_private(key, "the private key")
        return os.fspath(self.cert_file), str(key)

    def _refuse_redirect(self, answer: Any, **_: Any) -> None:
        if 300 <= answer.status_code < 400:
            raise ConfigurationError(
                f"{self} redirects to another address (HTTP {answer.status_code}), where the login is not sent",
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
                f"{self} has no key {name!r}",
                f"for a new table, create it: create_key({name!r}); if tables use it, restore it",
            ) from error
        return _key_info(data)


def _key_info(data: dict[str, Any]) -> KeyInfo:
    """Turn Vault's description of a key into ours.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        return _described(data)
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError("Vault describes a key in an unknown way", _NO_VAULT) from error


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
    """Return when the oldest version was made, which Vault gives as seconds since 1970 or as text."""
    if not versions:
        return None
    first = versions[min(versions, key=int)]
    if isinstance(first, dict):
        return str(first["creation_time"]) if "creation_time" in first else None
    return datetime.fromtimestamp(int(first), timezone.utc).isoformat()
