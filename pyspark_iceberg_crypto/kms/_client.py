"""Keys wrapped and unwrapped in Python: what a client of a KMS is, and how ours are made."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import _forks

if TYPE_CHECKING:
    from pyspark_iceberg_crypto.kms._base import Kms

CALL_TIMEOUT_MS = 10_000
_BARE = re.compile(r"\w(([\w.-]+)?\w)?", re.ASCII)

# How the hint of a missing key ends, once it has told how to create one for a new table.
IF_IN_USE = (
    "; if tables use it already, do not create it: use the KMS that they were written with, or restore the key from"
    " a backup"
)


@runtime_checkable
class KeyManagementClient(Protocol):
    """What wraps and unwraps keys: the shape that PyIceberg's own clients will have.

    Every KMS of this package is one, and so is any object of yours with these two methods. One that also has
    ``for_table(uuid)`` learns for which table a key is; ``authenticates_wrapping(wrapping_key_id)`` says whether only
    users of a master key can wrap what it unwraps. Many threads may call it at once.
    """

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Wrap a key with a master key, by the master key's id."""
        ...

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Unwrap what `wrap_key` returned."""
        ...


class MasterKeys(ABC):
    """The master keys of one KMS as this process reaches them, with the login and connections that this takes.

    It is not pickled: `KmsClient` is, which makes another. Many threads use it at once.
    """

    @abstractmethod
    def wrap(self, key: bytes, key_id: str, table: str | None) -> bytes:
        """Wrap a key.

        Args:
            key: the key.
            key_id: the master key's id.
            table: the UUID of the table whose key it is; None: not known.
        """

    @abstractmethod
    def unwrap(self, wrapped: bytes, key_id: str, table: str | None) -> bytes:
        """Unwrap a key; arguments as of `wrap`."""

    def close(self) -> None:
        """Give up the connections. Another call makes new ones."""
        return


class _Reached:
    """The way to a KMS, made by the first call and shared by the clients of all tables."""

    def __init__(self, kms: Kms, call_timeout_ms: int) -> None:
        self.kms = kms
        self.call_timeout_ms = call_timeout_ms
        self._lock = threading.Lock()
        self._keys: MasterKeys | None = None
        self._of_parents: list[MasterKeys | None] = []
        _forks.follow(self)

    def after_fork(self) -> None:
        """Begin with a login of this process: what its parent uses still is kept, for what is dropped may be closed."""
        self._lock = threading.Lock()
        self._of_parents.append(self._keys)
        self._keys = None

    def keys(self) -> MasterKeys:
        with self._lock:
            if self._keys is None:
                self._keys = self.kms._open(self.call_timeout_ms / 1000)
            return self._keys

    def close(self) -> None:
        with self._lock:
            keys, self._keys = self._keys, None
        if keys is not None:
            keys.close()

    def __reduce__(self) -> tuple[type[_Reached], tuple[Kms, int]]:
        return _Reached, (self.kms, self.call_timeout_ms)


class KmsClient:
    """A KMS of this package as the tables of a catalog use it, or one of them.

    The login is made by the first call. What is pickled are the KMS's settings.

    Attributes:
        kms: the KMS.
        table_uuid: the UUID of the table that it is for; None: of none, or not known.
    """

    def __init__(self, reached: _Reached, table_uuid: str | None = None) -> None:
        self._reached = reached
        self.table_uuid = table_uuid

    @property
    def kms(self) -> Kms:
        """The KMS, which holds settings and no secret."""
        return self._reached.kms

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Wrap a key; see `Kms.wrap_key`."""
        return self._reached.keys().wrap(bytes(key), wrapping_key_id, self.table_uuid)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Unwrap a key; see `Kms.unwrap_key`."""
        return self._reached.keys().unwrap(bytes(wrapped_key), wrapping_key_id, self.table_uuid)

    def authenticates_wrapping(self, wrapping_key_id: str) -> bool:
        """See `Kms.authenticates_wrapping`."""
        return self.kms.authenticates_wrapping(wrapping_key_id)

    @property
    def binds_table(self) -> bool:
        """Whether the user chose that wrapped keys are bound to their table's UUID."""
        return self.kms.binds_table

    def for_table(self, uuid: str | None) -> KmsClient:
        """Return this client for the keys of one table; see `Kms.for_table`."""
        return KmsClient(self._reached, uuid)

    def close(self) -> None:
        """Give up the connections; another call makes new ones."""
        self._reached.close()

    def __str__(self) -> str:
        return self.kms._name

    def __repr__(self) -> str:
        return f"<KmsClient of {self}>"


def client_of(kms: Kms, call_timeout_ms: int = CALL_TIMEOUT_MS) -> KmsClient:
    """Return a client with a login of its own.

    Args:
        kms: which KMS.
        call_timeout_ms: how long one request may take, in milliseconds.
    """
    return KmsClient(_Reached(kms, call_timeout_ms))


def require_table(uuid: str | None, setting: str) -> str:
    """Return the UUID of the table whose key is wrapped or unwrapped.

    Args:
        uuid: what the caller said.
        setting: what asks for it, for the error.

    Raises:
        ConfigurationError: the caller did not say.
    """
    if uuid is None:
        raise ConfigurationError(
            f"{setting} asks for the table's UUID, but the caller did not pass it",
            "the KMS was not called. Call for_table(uuid), and use what it returns for that table's keys",
        )
    return uuid


def is_bare_name(key_id: object, longest: int | None = None) -> bool:
    """Return whether a key id is no more than a name, so that it may become part of a path."""
    if not isinstance(key_id, str) or not _BARE.fullmatch(key_id) or ".." in key_id:
        return False
    return longest is None or len(key_id) <= longest


def require_bare_name(name: object, kms: str, longest: int | None = None) -> None:
    """Refuse what cannot be the name of a key; see `is_bare_name`."""
    if not is_bare_name(name, longest):
        raise ConfigurationError(
            f"{name!r} cannot be the name of a key in {kms}",
            "use letters, digits and '_', and '-' and '.' within",
        )


def object_of(answer: Any) -> dict[str, Any]:
    """Return the JSON object of an HTTP answer; empty for another, such as a proxy's page: the status tells."""
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
