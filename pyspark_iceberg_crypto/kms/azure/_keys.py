"""Keys wrapped and unwrapped by an Azure vault; in Java: ``AzureKeys``, ``AzureVault``, ``AzureVersionSearch``.

By the vault's REST interface, through the pipeline of Azure's client. Azure's CryptographyClient would fetch the key
first and wrap in this process, past the vault's checks of disabled and expired keys.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import _blob
from pyspark_iceberg_crypto.kms._client import IF_IN_USE, MasterKeys, object_of
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms.azure._errors import ERRORS, headers_unlogged

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.azure._key_vault import AzureKeyVault

VERSIONS_TO_TRY = 50
_KMS = "azure"
_VERSION = re.compile(r"[0-9a-zA-Z]{1,64}")
_KID = re.compile(r"https://[^/]+/keys/(?P<name>[0-9a-zA-Z-]+)/(?P<version>[0-9a-zA-Z]+)")
_UNUSABLE = re.compile(r"disabled key|expired key|not yet valid", re.IGNORECASE)
_UNFIT = re.compile(r"incompatible|algorithm|\balg\b|key type|\bkty\b", re.IGNORECASE)
_MOST_REMEMBERED = 8
_LONGEST = 300


class _Key(NamedTuple):
    """A key of the vault: the id that was given, its name, and a version; without one it is the current one."""

    given: str
    name: str
    version: str

    def at(self, version: str) -> _Key:
        return self._replace(version=version)

    def __str__(self) -> str:
        return f"'{self.given}'" + (f" (version {self.version})" if self.version else "")


class AzureKeys(MasterKeys):
    """The master keys of a vault.

    A wrapped key is what the vault's wrapkey gives or, with ``store_key_version``, a header with the body length of the
    version's id (1 byte) | the id (ASCII) | what wrapkey gave. Without a version all are tried: those that worked in
    this process, the current one, then all enabled ones, the newest first.
    """

    def __init__(self, vault: AzureKeyVault, call_seconds: float) -> None:
        self._vault, self._name = vault, vault._name
        self._seconds = call_seconds
        self._lock = threading.Lock()
        self._opened: tuple[Any, Any] | None = None  # the client and the credential
        self._worked: dict[str, list[str]] = {}  # versions by the key's name, the latest first

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        by = self._key(key_id)
        algorithm = self._vault.algorithm
        if self._vault.wraps_with_aes and (len(key) < 16 or len(key) % 8):
            raise NotSupportedError(
                f"{self._name}: {algorithm} cannot wrap {len(key)} bytes under key '{key_id}'",
                "AES key wrap takes 16 bytes or more, in multiples of 8: keys of 128, 192 or 256 bits",
            )
        wrapped, version = self._use("wrapkey", key, by)
        if self._vault.store_key_version:
            body = bytes([len(version)]) + version.encode("ascii") + wrapped
            return _blob.WrappedKey(_KMS, 0, body).encode()
        self._it_worked(by.name, version)
        return wrapped

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        by = self._key(key_id)
        if _blob.kms_of(wrapped, key_id) is not None:
            return self._unwrap_stored(wrapped, by)
        if by.version:
            return self._use("unwrapkey", wrapped, by)[0]
        return _Search(self, wrapped, by, self._vault.versions_to_try or VERSIONS_TO_TRY).run()

    def close(self) -> None:
        """See `MasterKeys.close`."""
        with self._lock:
            opened, self._opened = self._opened, None
        for one in opened or ():
            one.close()

    def _key(self, key_id: str) -> _Key:
        name, version = self._vault._parse(key_id)
        return _Key(key_id, name, version or "")

    def _unwrap_stored(self, blob: bytes, by: _Key) -> bytes:
        body = _blob.parse(blob, _KMS, by.given).body
        length = body[0] if body else 0
        if length == 0 or len(body) - 1 <= length:
            raise self._damaged(by, "it ends before its key")
        version = body[1 : 1 + length].decode("ascii", errors="replace")
        if not _VERSION.fullmatch(version):
            raise self._damaged(by, "the key version in it is impossible")
        if by.version and by.version.lower() != version.lower():
            raise BadWrappedKeyError(
                f"{self._name}: a key to be unwrapped with key '{by.given}' was wrapped by its version {version}",
                "name that version, or the key without a version, as the table's key id",
            )
        return self._use("unwrapkey", body[1 + length :], by.at(version))[0]

    def _damaged(self, by: _Key, why: str) -> BadWrappedKeyError:
        return BadWrappedKeyError(
            f"{self._name}: a key wrapped under '{by.given}' with its key version is damaged: {why}",
            _blob.RESTORE,
        )

    # ---- what is asked

    def _use(self, operation: str, data: bytes, key: _Key) -> tuple[bytes, str]:
        """Wrap or unwrap with the version that is named, or the current one; return which one did it."""
        value = base64.urlsafe_b64encode(data).decode().rstrip("=")
        request = load("azure.core.rest", self._vault.extra).HttpRequest(
            "POST",
            # Without a version the path has two slashes, as Azure's own clients write it.
            f"/keys/{key.name}/{key.version}/{operation}",
            json={"alg": self._vault.algorithm, "value": value},
        )
        with self._asking(key) as client:
            answer = client.send_request(request)
            status, body = answer.status_code, object_of(answer)
        if status != 200:
            raise self._refusal(status, body, operation, key, value)
        kid = _KID.fullmatch(str(body.get("kid", "")))
        output = _blob.decoded(body.get("value"))
        if not kid or not output or kid["name"].lower() != key.name.lower():
            raise self._not_vault(status, key)
        return output, kid["version"]

    def _versions(self, key: _Key) -> list[tuple[str, bool]]:
        """List a key's versions, the newest first, and whether each is enabled; needs the permission to list."""
        with self._asking(key) as client:
            found = list(client.list_properties_of_key_versions(key.name))
        found.sort(
            key=lambda one: one.created_on.timestamp() if one.created_on else 0, reverse=True
        )
        return [(str(one.version), one.enabled is not False) for one in found]

    def _it_worked(self, name: str, version: str) -> None:
        with self._lock:
            before = [other for other in self._worked.get(name, []) if other != version]
            self._worked[name] = [version, *before][:_MOST_REMEMBERED]

    def _that_worked(self, name: str) -> Sequence[str]:
        with self._lock:
            return tuple(self._worked.get(name, ()))

    @contextmanager
    def _asking(self, key: _Key) -> Iterator[Any]:
        with ERRORS.typed(f"{self._name}, key {key}"):
            with self._lock:
                if self._opened is None:
                    self._opened = self._vault._connect(
                        retry_total=0,  # CachedKms tries again
                        connection_timeout=self._seconds / 3,
                        read_timeout=self._seconds,
                    )
                client, _ = self._opened
            with headers_unlogged():
                yield client

    # ---- what answers mean

    def _refusal(
        self, status: int, body: dict[str, Any], operation: str, key: _Key, secret: str
    ) -> IcebergCryptoError:
        error = body.get("error")
        error = error if isinstance(error, dict) else {}
        inner = error.get("innererror")
        code = str(error.get("code", ""))
        reason = str(inner.get("code", "")) if isinstance(inner, dict) else ""
        message = " ".join(str(error.get("message", "")).split())
        if secret in message:
            message = ""
        said = f"HTTP {status} {reason or code} {message[:_LONGEST]}".strip()
        name = self._name
        if status in (408, 429) or status >= 500:
            return KmsUnavailableError(
                f"{name} is not available for key {key}: {said}",
                "the vault's limit of transactions is reached: keep keys in memory longer "
                "(encryption.kms.cache.ttl-ms)"
                if status == 429
                else "see Azure's status page",
                throttled=status == 429,
            )
        if status == 401:
            return LoginFailedError(
                f"{name} does not accept the login for key {key}: {said}",
                "check that its tenant is the vault's (AZURE_TENANT_ID), and this host's clock",
            )
        if not code:
            return self._not_vault(status, key)
        if status == 400:
            return self._bad_request(code, said, operation, key)
        if status == 403:
            return self._forbidden(reason, said, operation, key)
        if status == 409:
            return KmsUnavailableError(
                f"{name} is deleting or recovering key {key}: {said}",
                "try again when that is finished: az keyvault key list-deleted shows deleted keys",
            )
        if status == 404:
            return KeyNotFoundError(
                f"{name} has no key {key}: {said}",
                "check the name and the vault. A key that was deleted can be recovered while the vault keeps it: az "
                f"keyvault key recover --name {key.name} ...; for a new table, create it: create_key(...){IF_IN_USE}",
            )
        return self._not_vault(status, key)

    def _bad_request(self, code: str, said: str, operation: str, key: _Key) -> IcebergCryptoError:
        """Only the text tells an algorithm that does not fit from a damaged key."""
        if _UNFIT.search(f"{code} {said}"):
            return NotSupportedError(
                f"{self._name} cannot use {self._vault.algorithm} with key {key}: {said}",
                "set algorithm to one that fits the key: RSA-OAEP-256 for RSA, A256KW for a 256 bit AES key of a "
                "Managed HSM",
            )
        if operation == "unwrapkey":
            return BadWrappedKeyError(
                f"{self._name} cannot unwrap with key {key}: {said}",
                "the wrapped key was changed, or another key, version, algorithm or KMS wrapped it",
            )
        return ConfigurationError(
            f"{self._name} cannot wrap with key {key}: {said}", "check the key and the algorithm"
        )

    def _forbidden(self, reason: str, said: str, operation: str, key: _Key) -> IcebergCryptoError:
        if _UNUSABLE.search(said) or reason in ("KeyDisabled", "KeyExpired", "KeyNotYetValid"):
            return KeyDisabledError(
                f"{self._name} does not let anyone use key {key}: {said}",
                "enable the key, or correct its dates: az keyvault key set-attributes --enabled true, or rotate it",
            )
        if reason == "KeyOperationForbidden":
            return NotSupportedError(
                f"{self._name} does not permit this operation with key {key}: {said}",
                "the key's permitted operations need wrapKey and unwrapKey: az keyvault key set-attributes --ops "
                "wrapKey unwrapKey",
            )
        if reason in ("ForbiddenByFirewall", "ForbiddenByConnection", "ForbiddenByNsp"):
            return AccessDeniedError(
                f"{self._name} may not be used from this network for key {key}: {said}",
                "allow this host's network in the vault's firewall, or connect by its private endpoint",
            )
        return AccessDeniedError(
            f"{self._name} may not be used by this login for key {key}: {said}",
            f"grant this login {operation} on the key: driver_policy(...) prints how",
        )

    def _not_vault(self, status: int, key: _Key) -> ConfigurationError:
        return ConfigurationError(
            f"{self._name} answers for key {key}: HTTP {status}, which is not an answer of Key Vault",
            "check vault_url, and any proxy on the way there",
        )


class _Search:
    """Finds the version of a key that unwraps a blob, which does not say it. One that unwraps is the right one."""

    def __init__(self, keys: AzureKeys, wrapped: bytes, key: _Key, most: int) -> None:
        self._keys, self._wrapped, self._key, self._most = keys, wrapped, key, most
        self._tried: set[str] = set()
        self._refusals: list[IcebergCryptoError] = []

    def run(self) -> bytes:
        for version in (*self._keys._that_worked(self._key.name), ""):
            found = self._attempt(version)
            if found is not None:
                return found
        versions = self._versions()
        disabled = [version for version, enabled in versions if not enabled]
        for version, enabled in versions:
            if not enabled or version in self._tried:
                continue
            if len(self._tried) >= self._most:
                raise ConfigurationError(
                    f"{self._keys._name}: of the {len(versions)} versions of key '{self._key.given}', {self._most} "
                    "were tried, the newest first, and none unwraps this key",
                    "raise encryption.kms.azure.versions-to-try to try older ones",
                )
            found = self._attempt(version)
            if found is not None:
                return found
        raise self._not_found(len(versions), disabled)

    def _attempt(self, version: str) -> bytes | None:
        """Return the key; None when this version does not unwrap it. Whatever concerns no version is raised."""
        self._tried.add(version)
        try:
            key, used = self._keys._use("unwrapkey", self._wrapped, self._key.at(version))
        except (BadWrappedKeyError, KeyDisabledError, NotSupportedError) as error:
            self._refusals.append(error)
            return None
        except KeyNotFoundError as error:
            if not version:
                raise
            self._refusals.append(error)  # remembered of a key that was deleted and made again
            return None
        self._keys._it_worked(self._key.name, used)
        return key

    def _versions(self) -> list[tuple[str, bool]]:
        try:
            return self._keys._versions(self._key)
        except AccessDeniedError as error:
            if isinstance(error, LoginFailedError):
                raise
            others = [one for one in self._refusals if not isinstance(one, BadWrappedKeyError)]
            if others:
                raise others[0] from error
            raise AccessDeniedError(
                f"{self._keys._name}: the current version of key '{self._key.given}' does not unwrap this key, and "
                f"this login may not list the older versions: {error.message}",
                "grant list on the key ('Key Vault Crypto Service Encryption User' has it), so that what was written "
                "before a rotation can be read; if the key was never rotated, the wrapped key was changed or another "
                "key wrapped it",
            ) from error

    def _not_found(self, versions: int, disabled: list[str]) -> IcebergCryptoError:
        name, given = self._keys._name, self._key.given
        if disabled:
            return KeyDisabledError(
                f"{name}: no enabled version of key '{given}' unwraps this key, and "
                f"{'this one is' if len(disabled) == 1 else 'these are'} disabled: {', '.join(disabled)}",
                "enable the version that wrapped it: az keyvault key set-attributes --enabled true --version ...; if "
                "none did, the wrapped key was changed or another key wrapped it",
            )
        unfit = [one for one in self._refusals if isinstance(one, NotSupportedError)]
        if unfit:
            return unfit[0]
        return BadWrappedKeyError(
            f"{name}: none of the {versions} versions of key '{given}' unwraps this key of {len(self._wrapped)} bytes",
            "the wrapped key was changed, or another key, algorithm or KMS wrapped it",
        )
