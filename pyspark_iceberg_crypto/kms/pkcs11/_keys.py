"""Keys wrapped and unwrapped by a token; in Java these are ``Pkcs11Keys``, ``Pkcs11Token`` and ``Pkcs11Session``."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from pyspark_iceberg_crypto.errors import (
    BadWrappedKeyError,
    ConfigurationError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms import _blob, _forks, _versions
from pyspark_iceberg_crypto.kms._client import IF_IN_USE, MasterKeys
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms.pkcs11._tool import Pin

EXTRA = "pkcs11"
_KMS = "pkcs11"
_LOOK_SECONDS = 10  # labels are listed again after so long, before a wrap
_E = "pkcs11.exceptions."
_T = TypeVar("_T")

# A new session and login may fix these; some tokens answer the last three to bad data, too.
_ENDED = (
    *("SessionHandleInvalid", "SessionClosed", "UserNotLoggedIn", "KeyHandleInvalid"),
    *("ObjectHandleInvalid", "OperationNotInitialized", "DeviceRemoved", "TokenNotPresent"),
    *("DeviceError", "GeneralError", "FunctionFailed"),
)
_BAD_DATA = ("EncryptedDataInvalid", "EncryptedDataLenRange")

ERRORS = ErrorTable(
    [
        Rule(
            f"{_E}PinIncorrect {_E}PinInvalid {_E}PinLenRange",
            LoginFailedError,
            "check the pin; this process does not try it again: a token locks itself after a few wrong ones",
            "{what}: login refused, the pin is wrong ({code})",
        ),
        Rule(
            f"{_E}PinExpired",
            LoginFailedError,
            "set a new pin: pkcs11-tool --login --change-pin",
            "{what}: login refused, the pin has expired",
        ),
        Rule(
            f"{_E}PinLocked",
            LoginFailedError,
            "the token's security officer unlocks it: pkcs11-tool --login-type so --init-pin",
            "{what}: login refused, the token has locked the pin",
        ),
        Rule(
            f"{_E}UserPinNotInitialized",
            LoginFailedError,
            "the token's security officer sets it: pkcs11-tool --login-type so --init-pin",
            "{what}: login refused, the token's user has no pin yet",
        ),
        Rule(
            f"{_E}KeyTypeInconsistent {_E}FunctionRejected",
            KeyDisabledError,
            "the key's attributes forbid it: CKA_ENCRYPT and CKA_DECRYPT must be true",
        ),
        Rule(
            f"{_E}MechanismInvalid {_E}MechanismParamInvalid {_E}ArgumentsBad {_E}FunctionNotSupported",
            NotSupportedError,
            "the token must support AES-GCM (CKM_AES_GCM) with a nonce that the caller gives",
        ),
        Rule(
            f"{_E}PKCS11Error",
            KmsUnavailableError,
            "check that the HSM is up and reachable; the log of its library says more",
        ),
        Rule(
            "RuntimeError OSError",
            ConfigurationError,
            "library= is the path of the HSM's PKCS#11 library (a .so file)",
            "{library} cannot be loaded as a PKCS#11 library",
        ),
    ],
    lambda error: ((), f"{type(error).__name__} {error}".strip()),
)


class Place(NamedTuple):
    """How a token is named: by its library, and by its label or its slot."""

    library: str
    label: str | None
    slot: int | None

    def __str__(self) -> str:
        which = f"slot {self.slot}" if self.label is None else f"token '{self.label}'"
        return f"PKCS#11 {which} of {self.library}"


class Pkcs11Keys(MasterKeys):
    """The master keys of a token. Wrapped keys have the body nonce | ciphertext | tag.

    The newest version that was seen wraps, the one that the header names unwraps. A session that the token has ended is
    replaced by one new login, and the call made again.
    """

    def __init__(self, place: Place, pin: Pin) -> None:
        self._token = _Token.at(place)
        self._place = place
        self._pin = pin

    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.wrap`."""
        _versions.require_key_id(key_id, str(self._place))

        def on(session: _Session, renewed: bool) -> bytes:
            seen = session
            if seen.newest(key_id) == 0 or time.monotonic() - seen.looked_at > _LOOK_SECONDS:
                seen = self._look_again(renewed)
            version = seen.newest(key_id)
            if version == 0:
                raise self._no_such_key(key_id, seen)
            seen.require_kept(key_id, version)
            body = seen.encrypt(key, key_id, version)
            if (key_id, version) not in seen.tried:
                self._require_readable(seen, body, key, key_id, version)
            return _blob.WrappedKey(_KMS, version, body).encode()

        return self._on_token("wrap", key_id, on)

    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """See `MasterKeys.unwrap`."""
        _versions.require_key_id(key_id, str(self._place))
        parsed = _blob.parse_sealed(wrapped, _KMS, key_id, str(self._place))
        version = parsed.version

        def on(session: _Session, renewed: bool) -> bytes:
            holding = session if session.has(key_id, version) else self._look_again(renewed)
            if holding.newest(key_id) == 0:
                raise self._no_such_key(key_id, holding)
            if not holding.has(key_id, version):
                raise KeyNotFoundError(
                    f"{self._place} has key '{key_id}', but not its version {version} "
                    f"(CKA_LABEL '{_versions.entry(key_id, version)}')",
                    "use the token that the table was written with, or restore the version from the HSM's backup",
                )
            key = holding.decrypt(parsed.body, key_id, version)
            if key is None:
                raise BadWrappedKeyError(
                    f"A wrapped key does not unwrap with version {version} of key '{key_id}' of {self._place}",
                    "this token's key of that label is not the one that wrapped it, or the wrapped key was changed: "
                    "use the token that the table was written with",
                )
            return key

        return self._on_token("unwrap", key_id, on)

    def _require_readable(
        self, session: _Session, body: bytes, key: bytes, key_id: str, version: int
    ) -> None:
        """Read back what a key wraps first: a token that makes its own nonce would make keys that nobody unwraps."""
        if session.decrypt(body, key_id, version) != key:
            raise NotSupportedError(
                f"{self._place} does not unwrap what it has just wrapped under '{key_id}'",
                "does the token replace the nonce of AES-GCM with one of its own, as some do in FIPS mode? Then it "
                "cannot be used here",
            )
        session.tried.add((key_id, version))

    def _look_again(self, renewed: bool) -> _Session:
        """Return the token as it is now; `renewed`: it was logged in to for this very call."""
        now = self._token.look_again()
        if not now.keys and not renewed:  # as in a session that has ended
            raise load("pkcs11.exceptions", EXTRA).UserNotLoggedIn("no key is visible")
        return now

    def _on_token(self, what: str, key_id: str, action: Callable[[_Session, bool], _T]) -> _T:
        """Do something in a session; again in a new one when the first one had ended.

        The second argument of the action says whether its session is a new one.
        """
        with (
            self._token.lock,
            ERRORS.typed(
                f"{self._place} could not {what} with key '{key_id}'", library=self._place.library
            ),
        ):
            try:
                return action(self._token.session(self._pin), False)
            except Exception as error:
                if type(error).__name__ not in _ENDED or not _is_tokens(error):
                    raise
            return action(self._token.renew(self._pin), True)

    def _no_such_key(self, key_id: str, session: _Session) -> KeyNotFoundError:
        shown = ", ".join(_versions.by_key(session.keys))
        return KeyNotFoundError(
            f"{self._place} has no key '{key_id}' (CKA_LABEL)",
            f"it has: {shown or 'none (is the HSM behind it up?)'}. For a new table, use one of these as "
            f"encryption.key-id, or create it on the token{IF_IN_USE}",
        )


class _Session:
    """A token after login: its keys by label, as they were when they were listed. Keys are handles."""

    def __init__(self, place: Place, opened: Any) -> None:
        pkcs11 = load("pkcs11", EXTRA)
        self.place = place
        self.opened = opened
        self.looked_at = time.monotonic()
        self.tried: set[tuple[str, int]] = set()
        self.keys: dict[str, list[Any]] = {}
        kind = {
            pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY,
            pkcs11.Attribute.KEY_TYPE: pkcs11.KeyType.AES,
        }
        for key in opened.get_objects(kind):
            self.keys.setdefault(str(key.label), []).append(key)

    def newest(self, key_id: str) -> int:
        """Return the newest version of a key; 0 if it does not exist."""
        return max(_versions.by_key(self.keys).get(key_id, [0]))

    def has(self, key_id: str, version: int) -> bool:
        """Return whether a version of a key is there."""
        return _versions.entry(key_id, version) in self.keys

    def encrypt(self, key: bytes, key_id: str, version: int) -> bytes:
        nonce = _blob.nonce()
        sealed: bytes = self._handle(key_id, version).encrypt(
            key, mechanism=_mechanism(), mechanism_param=_parameters(nonce, key_id, version)
        )
        return nonce + sealed

    def decrypt(self, body: bytes, key_id: str, version: int) -> bytes | None:
        """Decrypt what `encrypt` made; None when another key or other bytes were encrypted.

        Some tokens answer a bad tag with a general error: then a trial key goes there and back.
        """
        nonce, sealed = body[: _blob.NONCE_BYTES], body[_blob.NONCE_BYTES :]
        try:
            return self._decrypted(nonce, sealed, key_id, version)
        except Exception as error:
            if not _is_tokens(error):
                raise
            if type(error).__name__ not in _BAD_DATA:
                trial = self.encrypt(bytes(16), key_id, version)
                self._decrypted(
                    trial[: _blob.NONCE_BYTES], trial[_blob.NONCE_BYTES :], key_id, version
                )
            return None

    def _decrypted(self, nonce: bytes, sealed: bytes, key_id: str, version: int) -> bytes:
        key: bytes = self._handle(key_id, version).decrypt(
            sealed, mechanism=_mechanism(), mechanism_param=_parameters(nonce, key_id, version)
        )
        return key

    def _handle(self, key_id: str, version: int) -> Any:
        label = _versions.entry(key_id, version)
        handles = self.keys[label]
        if len(handles) > 1:
            raise ConfigurationError(
                f"{self.place} has {len(handles)} AES keys with the label '{label}'",
                "give one of them another label",
            )
        return handles[0]

    def require_kept(self, key_id: str, version: int) -> None:
        """Refuse to wrap with a key that the token gives out. What it has wrapped before is unwrapped all the same."""
        attribute = load("pkcs11", EXTRA).Attribute
        handle = self._handle(key_id, version)
        if handle[attribute.EXTRACTABLE] and not handle[attribute.SENSITIVE]:
            label = _versions.entry(key_id, version)
            raise ConfigurationError(
                f"Key '{label}' of {self.place} can be read out of the token: it is extractable and not sensitive",
                "make a key that stays in the token (pkcs11-tool --keygen --key-type AES:32 --sensitive --private "
                "--label NAME), and give it to the tables of this one with rotate_master_key: they can still be read. "
                "If anyone may have read the key out of the token, it has leaked: see docs/compromise.md",
            )


class _Token:
    """A token in this process, shared by all who name it: a process is logged in to a token as a whole."""

    _all: dict[Place, _Token] = {}  # noqa: RUF012 (of the process)
    _guard = threading.Lock()
    _of_parents: list[Any] = []  # noqa: RUF012 (likewise)
    _begun: set[str] = set()  # noqa: RUF012 (likewise)
    _begun_by_parents: set[str] = set()  # noqa: RUF012 (likewise)

    def __init__(self, place: Place) -> None:
        self.lock = threading.RLock()  # a session does one thing at a time
        self._place = place
        self._salt = os.urandom(16)
        self._accepted = b""  # a hash of the pin
        self._refused: set[bytes] = set()
        self._session: _Session | None = None

    @classmethod
    def at(cls, place: Place) -> _Token:
        with cls._guard:
            return cls._all.setdefault(place, cls(place))

    @classmethod
    def after_fork(cls) -> None:
        """Begin with logins of this process. Libraries that were in use begin again as well, as PKCS#11 asks for."""
        cls._guard = threading.Lock()
        cls._begun_by_parents |= cls._begun
        cls._begun.clear()
        for token in cls._all.values():
            cls._of_parents.append(token._session)  # what is dropped may be closed
            token._session, token.lock = None, threading.RLock()

    def session(self, pin: Pin) -> _Session:
        """Return the session; the token must have taken this very pin, or take it now."""
        read = pin.read()
        if self._session is None or self._hash(read) != self._accepted:
            return self._login(read, pin)
        return self._session

    def renew(self, pin: Pin) -> _Session:
        """Return a new session in place of one that has ended."""
        return self._login(pin.read(), pin)

    def look_again(self) -> _Session:
        """Return a session that knows the keys that the token has now, without a login."""
        if self._session is None:
            raise AssertionError("there is a session")
        tried = self._session.tried
        self._session = _Session(self._place, self._session.opened)
        self._session.tried = tried
        return self._session

    def _login(self, pin: str, source: Pin) -> _Session:
        pkcs11 = load("pkcs11", EXTRA)
        known = self._hash(pin)
        if known in self._refused:
            raise LoginFailedError(
                f"{self._place} could not log in: login refused, the pin in {source.env or source.file} is still the "
                "wrong one",
                "put the right pin there. It is not tried again as it is: a token locks itself after a few wrong ones",
            )
        if self._session is not None:
            self._close(self._session.opened)
            self._session = None
        try:
            opened = self._find(pkcs11).open(user_pin=pin)
        except pkcs11.exceptions.UserAlreadyLoggedIn:
            if known != self._accepted:
                raise
            opened = self._find(pkcs11).open()
        except (pkcs11.exceptions.PinIncorrect, pkcs11.exceptions.PinInvalid):
            self._refused.add(known)
            raise
        self._accepted = known
        self._session = _Session(self._place, opened)
        return self._session

    def _close(self, opened: Any) -> None:
        """End a session, which may have ended already; with the last one the login ends."""
        try:
            opened.close()
        except Exception as error:
            if not _is_tokens(error):
                raise

    def _find(self, pkcs11: Any) -> Any:
        tokens = {}
        for slot in self._library(pkcs11).get_slots(token_present=True):
            tokens[slot.slot_id] = slot.get_token()
        labels = {slot: str(token.label).rstrip() for slot, token in tokens.items()}
        place = self._place
        found = [
            token
            for slot, token in tokens.items()
            if (slot == place.slot if place.label is None else labels[slot] == place.label)
        ]
        if len(found) > 1:
            raise ConfigurationError(
                f"{self._place} could not be found: {len(found)} tokens have this label",
                "name the slot instead",
            )
        if not found and self._place.label is None:
            raise ConfigurationError(
                f"there is no PKCS#11 slot {self._place.slot} with a token in {self._place.library}",
                f"slots with tokens: {', '.join(map(str, labels)) or 'none'}",
            )
        if not found:
            raise ConfigurationError(
                f"{self._place} could not be found: no token has this label",
                f"the library shows tokens with these labels: {', '.join(filter(None, labels.values())) or 'none'}",
            )
        return found[0]

    def _library(self, pkcs11: Any) -> Any:
        path = self._place.library
        with self._guard:
            if path in self._begun_by_parents:
                self._begun_by_parents.discard(path)
                with suppress(pkcs11.exceptions.PKCS11Error):
                    pkcs11.lib(path).finalize()
            self._begun.add(path)
            return pkcs11.lib(path)

    def _hash(self, pin: str) -> bytes:
        return hashlib.sha256(self._salt + pin.encode()).digest()


_forks.follow(_Token)


def _is_tokens(error: Exception) -> bool:
    return isinstance(error, load("pkcs11.exceptions", EXTRA).PKCS11Error)


def _mechanism() -> Any:
    return load("pkcs11", EXTRA).Mechanism.AES_GCM


def _parameters(nonce: bytes, key_id: str, version: int) -> Any:
    aad = _blob.authenticated(_KMS, version, key_id)
    return load("pkcs11.mechanisms", EXTRA).GCMParams(nonce, aad, _blob.TAG_BYTES * 8)
