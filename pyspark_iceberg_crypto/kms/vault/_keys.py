"""Keys wrapped and unwrapped by Vault's transit engine; in Java these are ``VaultKeys`` and ``VaultErrors``."""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from pyspark_iceberg_crypto.kms._client import IF_IN_USE, MasterKeys, is_bare_name, object_of
from pyspark_iceberg_crypto.kms.vault._login import Token, has_login, token_of

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms.vault._vault import Vault

_KMS = "vault"
_BARE = b"vault:v"
_CIPHERTEXT = re.compile(r"vault:v([1-9][0-9]{0,8}):(\S+)", re.ASCII)
_PROBE = "vault:v1:probe"  # a ciphertext that no key decrypts
# The type of the key that encrypt would create: one that cannot encrypt, so that Vault refuses to.
_NEVER_CREATE = "ecdsa-p256"
_LONGEST = 300
_USABLE = (
    "use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, as Vault(...).create_key"
    " makes"
)
_NOT_NOW = (412, 429, 472, 473)


@dataclass(frozen=True)
class _Answer:
    """Vault's answer, with any status that says that it did look at the request."""

    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        """What Vault said was wrong, on one line; its errors hold no secrets."""
        errors = self.body.get("errors")
        told = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
        told = re.sub(r"[^\x21-\x7e]+", " ", told).strip()
        return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}..."

    @property
    def reason(self) -> str:
        """The same after a colon, or nothing."""
        return f": {self.message}" if self.message else ""

    @property
    def told(self) -> str:
        """The same in brackets after the status, for the end of a sentence."""
        return f"(HTTP {self.status}{self.reason})"

    @property
    def is_invalid_token(self) -> bool:
        return "invalid token" in self.message

    @property
    def is_missing_key(self) -> bool:
        """Whether an answer to encrypt or decrypt says that the key is not there."""
        words = ("encryption key not found", f"key type {_NEVER_CREATE} not")
        return self.status == 400 and any(word in self.message for word in words)

    @property
    def is_too_new(self) -> bool:
        """Whether an answer to decrypt says that the key has no such version, or not yet."""
        return self.status == 400 and "version is too new" in self.message

    def result(self, name: str) -> str:
        data = self.body.get("data")
        found = data.get(name) if self.status == 200 and isinstance(data, dict) else None
        return found if isinstance(found, str) else ""

    def __repr__(self) -> str:
        return f"HTTP {self.status} {sorted(self.body)}"


class VaultKeys(MasterKeys):
    """The master keys of a transit engine: connections and a login.

    A wrapped key is a header, which names the key's version, and Vault's ciphertext, which is bound to the key id as
    associated data. Bare ciphertexts are read and made only if that is asked for.
    """

    def __init__(self, vault: Vault, call_seconds: float) -> None:
        self._vault = vault
        self._seconds = call_seconds
        self._lock = threading.Lock()
        self._client: Any = None
        self._held: tuple[Token, float] | None = None  # and when it was made
        self._is_transit = False
        self._binds = False
        self._authenticating: set[str] = set()  # keys whose ciphertexts have a tag
        self._bare = vault.wrapped_format == "bare"

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        self._check(key_id)
        with self._about(key_id, "wrap"):
            return self._encrypt(key, key_id)

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        self._check(key_id)
        bare = wrapped.startswith(_BARE)
        ciphertext = self._bare_ciphertext(wrapped, key_id) if bare else self._of(wrapped, key_id)
        with self._about(key_id, "unwrap"):
            bound = {} if bare else _bound(key_id)
            answer = self._ask("decrypt", key_id, {**bound, "ciphertext": ciphertext})
            key = _blob.decoded(answer.result("plaintext"))
            if not key:
                raise self._error(answer, "decrypt", key_id)
            if bare:
                self._require_authenticating(key_id, ciphertext)
            return key

    def close(self) -> None:
        """See `MasterKeys.close`."""
        with self._lock:
            client, self._client, self._held = self._client, None, None
        if client is not None:
            client.adapter.close()

    @contextmanager
    def _about(self, key_id: str, what: str) -> Iterator[None]:
        """Have errors name the key that they are about."""
        try:
            with self._vault._typed(f"{self._vault} did not {what} with key '{key_id}'"):
                yield
        except (KmsUnavailableError, AccessDeniedError, ConfigurationError) as error:
            if f"'{key_id}'" in error.message:
                raise
            named = copy(error)  # with all that it says beside its text
            named.message = f"Key '{key_id}' cannot be used: {error.message}"
            raise named from error.__cause__

    def _encrypt(self, key: bytes, key_id: str) -> bytes:
        if not self._is_transit:
            self._require_transit(key_id)
            self._is_transit = True
        bound = {} if self._bare else _bound(key_id)
        plaintext = base64.b64encode(key).decode()
        answer = self._ask(
            "encrypt", key_id, {**bound, "plaintext": plaintext, "type": _NEVER_CREATE}
        )
        ciphertext = answer.result("ciphertext")
        parsed = _CIPHERTEXT.fullmatch(ciphertext)
        if parsed is None:
            raise self._error(answer, "encrypt", key_id)
        if self._bare:
            self._require_authenticating(key_id, ciphertext)
            return ciphertext.encode()
        if not self._binds:
            self._require_bound(key_id, ciphertext)
            self._binds = True
        return _blob.WrappedKey(_KMS, int(parsed[1]), ciphertext.encode()).encode()

    def _require_transit(self, key_id: str) -> None:
        """Make sure that the mount is a transit engine before a key goes there: another one might store it."""
        answer = self._ask("decrypt", key_id, {**_bound(key_id), "ciphertext": _PROBE})
        if answer.status != 400 or answer.is_missing_key:
            raise self._error(answer, "decrypt", key_id)

    def _require_bound(self, key_id: str, ciphertext: str) -> None:
        """Make sure that a wrapped key is bound to its key id: a Vault before 1.13 ignores associated data."""
        other = {**_bound(f"{key_id}.other"), "ciphertext": ciphertext}
        answer = self._ask("decrypt", key_id, other)
        if answer.status == 200:
            raise self._ignores_associated_data(key_id)
        if answer.is_too_new:  # it was not tried
            raise self._error(answer, "decrypt", key_id)

    def _require_authenticating(self, key_id: str, ciphertext: str) -> None:
        """Make sure that a key authenticates what it wraps: with associated data its tag must not fit."""
        if key_id in self._authenticating:
            return
        answer = self._ask("decrypt", key_id, {**_bound(key_id), "ciphertext": ciphertext})
        if answer.status == 200:
            raise self._ignores_associated_data(key_id)
        refusal = self._error(answer, "decrypt", key_id)
        if not isinstance(refusal, BadWrappedKeyError):
            raise refusal
        self._authenticating.add(key_id)

    def _ignores_associated_data(self, key_id: str) -> NotSupportedError:
        return NotSupportedError(
            f"{self._vault} does not bind what it wraps with key '{key_id}' to the key id",
            "use Vault 1.13 or newer: older ones ignore associated data",
        )

    # ---- what is asked

    def _ask(self, operation: str, key_id: str, body: dict[str, str]) -> _Answer:
        """Ask, and again when there is another token than the one that Vault refused."""
        path = f"{self._vault.transit_mount.strip('/')}/{operation}/{key_id}"
        token = self._token()
        answer = self._request(path, token, body)
        if answer.status == 403:
            other = self._token(refused=token if answer.is_invalid_token else None)
            if other != token:
                token, answer = other, self._request(path, other, body)
        if answer.status == 403:
            raise self._denied(answer, token, operation, key_id)
        return answer

    def _token(self, refused: str | None = None) -> str:
        """Return the token to use now: read again each time, or kept as long as a login's lives.

        Args:
            refused: a token that is no longer one.
        """
        with self._lock:
            if self._held is not None:
                token, made = self._held
                lives = not token.seconds or time.monotonic() - made < token.seconds
                if lives and token.token != refused:
                    return token.token
            made = time.monotonic()
            token = token_of(vars(self._vault), self._connected(), str(self._vault))
            self._held = (token, made) if token.is_made else None
            return token.token

    def _connected(self) -> Any:
        if self._client is None:
            self._client = self._vault._connect(self._seconds)
        return self._client

    def _request(self, path: str, token: str, body: dict[str, str]) -> _Answer:
        with self._lock:
            adapter = self._connected().adapter
        found = adapter.request(
            "post", f"/v1/{path}", {"X-Vault-Token": token}, raise_exception=False, json=body
        )
        if isinstance(found, dict):  # of 200
            return _Answer(200, found)
        return self._available(_Answer(found.status_code, object_of(found)))

    def _available(self, answer: _Answer) -> _Answer:
        """Return an answer to the request itself; raise the error for any other."""
        if answer.status in _NOT_NOW or answer.status >= 500:
            sealed = answer.status == 503 and "sealed" in answer.message
            if sealed:
                raise KmsUnavailableError(
                    f"Vault at {self._vault.address} is sealed {answer.told}",
                    "unseal it (vault operator unseal)",
                )
            raise KmsUnavailableError(
                f"Vault at {self._vault.address} failed (HTTP {answer.status}{answer.reason})",
                "look at vault status and Vault's log, and at the load balancer before it",
                throttled=answer.status == 429,
            )
        if answer.status >= 300 and (answer.status < 400 or "errors" not in answer.body):
            raise ConfigurationError(
                f"{self._vault} does not answer as Vault does {answer.told}",
                "check the address: is a proxy or another server there, or http where https should be?",
            )
        return answer

    # ---- what answers mean

    def _denied(
        self, answer: _Answer, token: str, operation: str, key_id: str
    ) -> IcebergCryptoError:
        """Tell why Vault answered 403: it does for a bad token, for a missing policy, and for a missing key."""
        vault = self._vault
        if answer.is_invalid_token:
            return LoginFailedError(
                f"{vault}: login refused for key '{key_id}': the token expired, was revoked, or is not of this Vault",
                "put a new token there, or log in by AppRole, Kubernetes, JWT or TLS certificate, which makes tokens "
                "as it needs them",
            )
        if operation == "encrypt":
            path = f"{vault.transit_mount.strip('/')}/decrypt/{key_id}"
            probe = {**_bound(key_id), "ciphertext": _PROBE}
            if self._request(path, token, probe).is_missing_key:
                return self._key_not_found(key_id)
        policy = f'path "{vault.transit_mount.strip("/")}/{operation}/{key_id}" {{ capabilities = ["update"] }}'
        login = "login" if has_login(vars(vault)) else "token"
        return AccessDeniedError(
            f"{vault}: the {login} may not {operation} with key '{key_id}': its policies do not allow it, or it "
            f"expired {answer.told}",
            f"check that the token is still valid (vault token lookup); its policy needs: {policy}",
        )

    def _error(self, answer: _Answer, operation: str, key_id: str) -> IcebergCryptoError:
        """Make the error for an answer without a result, with another status than 403."""
        vault, mount = self._vault, self._vault.transit_mount.strip("/")
        if answer.status in (404, 405) or answer.status < 300:
            return ConfigurationError(
                f"{vault}: key '{key_id}' cannot be used, there is no transit engine at '{mount}' {answer.told}",
                f"enable it (vault secrets enable -path={mount} transit), or set transit_mount and namespace to where "
                "it is",
            )
        if answer.is_missing_key:
            return self._key_not_found(key_id)
        message = answer.message
        if "missing 'context' for key derivation" in message:
            return NotSupportedError(f"Key '{key_id}' of {vault} is a derived key", _USABLE)
        if "non-AEAD cipher" in message or "not supported for key type" in message:
            return NotSupportedError(
                f"Key '{key_id}' of {vault} is of a type that cannot wrap keys with authentication {answer.told}",
                _USABLE,
            )
        if "disallowed by policy (too old)" in message:
            return KeyDisabledError(
                f"{vault} no longer unwraps with the version of key '{key_id}' that wrapped this: the key's "
                "min_decryption_version is above it",
                f"lower it: vault write {mount}/keys/{key_id}/config min_decryption_version=N",
            )
        if answer.is_too_new:
            return KmsUnavailableError(
                f"{vault} does not have the version of key '{key_id}' that wrapped this, or not yet {answer.told}",
                "a standby or a secondary cluster has it soon after a rotation: try again, or give the address of the "
                "active cluster. If it stays so, this Vault was restored from a snapshot before the rotation, or the "
                "key was deleted and created again: restore the key from a backup that has the version (vault read "
                f"{mount}/keys/{key_id}). Only if there never was one was the wrapped key changed",
            )
        if answer.status == 400 and operation == "decrypt":
            return BadWrappedKeyError(
                f"{vault} does not unwrap a key that names '{key_id}' as its master key {answer.told}",
                "the wrapped key was changed, or another key or another Vault wrapped it (was the key deleted and "
                "created again?): restore the table's metadata, or the key from Vault's backup",
            )
        return IcebergCryptoError(
            f"{vault} does not wrap with key '{key_id}' {answer.told}",
            f"look at the key: vault read {mount}/keys/{key_id}",
        )

    def _key_not_found(self, key_id: str) -> KeyNotFoundError:
        return KeyNotFoundError(
            f"{self._vault} has no key '{key_id}'",
            f"check encryption.key-id and transit_mount; for a new table, create it: create_key('{key_id}'){IF_IN_USE}",
        )

    # ---- blobs

    def _of(self, blob: bytes, key_id: str) -> str:
        """Return Vault's ciphertext in a blob, whose two versions must agree."""
        wrapped = _blob.parse(blob, _KMS, key_id)
        ciphertext = wrapped.body.decode("latin-1")
        parsed = _CIPHERTEXT.fullmatch(ciphertext)
        if not parsed or int(parsed[1]) != wrapped.version or not _is_canonical(parsed[2]):
            raise BadWrappedKeyError(
                f"A key wrapped under '{key_id}' by {self._vault} is damaged: its header says version "
                f"{wrapped.version}, but no ciphertext of that version follows",
                _blob.RESTORE,
            )
        return ciphertext

    def _bare_ciphertext(self, blob: bytes, key_id: str) -> str:
        if not (self._bare or self._vault.read_bare):
            raise NotSupportedError(
                f"A key wrapped under '{key_id}' by {self._vault} is Vault's bare ciphertext, without this project's "
                "header: anyone who can encrypt data with this transit key can make one",
                "if another client writes the table, and nothing but Iceberg tables uses this transit key, set "
                'read_bare (docs/kms/vault.md, "Bare ciphertexts"); otherwise find out who wrote the table\'s metadata',
            )
        ciphertext = blob.decode("latin-1")
        parsed = _CIPHERTEXT.fullmatch(ciphertext)
        if not parsed or not _is_canonical(parsed[2]):
            raise BadWrappedKeyError(
                f"A key wrapped under '{key_id}' by {self._vault} is damaged: it starts like Vault's ciphertext, but is"
                " not valid",
                _blob.RESTORE,
            )
        return ciphertext

    def _check(self, key_id: str) -> None:
        """Refuse a key id that is more than a name: it becomes part of a path."""
        if not is_bare_name(key_id):
            raise ConfigurationError(
                f"'{key_id}' cannot be the name of a key of {self._vault}",
                "use the transit key's bare name: letters, digits, '_', and '-' and '.' within",
            )


def _bound(key_id: str) -> dict[str, str]:
    return {"associated_data": base64.b64encode(key_id.encode()).decode()}


def _is_canonical(text: str) -> bool:
    """Return whether encoding gives the same text: decoders, Vault's too, ignore the last unused bits."""
    return base64.b64encode(_blob.decoded(text)).decode() == text
