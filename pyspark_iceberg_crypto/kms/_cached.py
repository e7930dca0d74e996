"""What every KMS client goes through: a cache of unwrapped keys, calls again while the KMS is unavailable, counters."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, fields
from typing import Any

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    IcebergCryptoError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms import _forks
from pyspark_iceberg_crypto.kms._base import Kms
from pyspark_iceberg_crypto.kms._client import KeyManagementClient, KmsClient
from pyspark_iceberg_crypto.kms._errors import causes, shows_header
from pyspark_iceberg_crypto.kms._extras import READER, load

CACHE_TTL_MS = 3_600_000
_JITTER = 0.25  # of each wait, so that clients do not come in step
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retry:
    """How a call is made again while the KMS is unavailable; times are in milliseconds.

    Attributes:
        max_attempts: how often at most, the first time included. Where the KMS answers that it is called too often,
            only 1 counts.
        initial_delay_ms: the wait before the second attempt. It doubles with each attempt, and is longer or shorter by
            up to a quarter of it at random. Where the KMS is called too often, it is anything between 0 and that.
        max_delay_ms: the longest wait.
        timeout_ms: after how long no other attempt is begun.
    """

    max_attempts: int = 5
    initial_delay_ms: int = 200
    max_delay_ms: int = 5_000
    timeout_ms: int = 30_000


@dataclass
class KmsCalls:
    """What a `CachedKms` asked of its KMS in this process; names as of `KmsMetrics`.

    Attributes:
        wrap_calls: calls that wrapped a key, failed ones included.
        unwrap_calls: calls that unwrapped one.
        hits: keys that came from the cache instead.
        misses: keys that were not in the cache.
        errors: calls that failed.
        retries: calls that were made again because the KMS had been unavailable.
    """

    wrap_calls: int = 0
    unwrap_calls: int = 0
    hits: int = 0
    misses: int = 0
    errors: int = 0
    retries: int = 0


_CacheKey = tuple[str, str | None, bytes]


class _Entry:
    """An unwrapped key, or one that is on its way; its bytes are overwritten in the end."""

    def __init__(self) -> None:
        self.loaded: Future[bytearray] = Future()
        self.held = bytearray()
        self.ends = float("inf")

    def load(self, unwrapped: bytes) -> None:
        """Give the key to those who wait for it."""
        self.held[:] = unwrapped
        self.loaded.set_result(self.held)

    def wipe(self) -> None:
        self.held[:] = bytes(len(self.held))


class _Cache:
    """Unwrapped keys for a limited time; threads that ask for one at the same time share one call."""

    def __init__(self, ttl_ms: int) -> None:
        self._seconds = ttl_ms / 1000
        self._lock = threading.Lock()
        self._entries: dict[_CacheKey, _Entry] = {}

    @property
    def keeps(self) -> bool:
        return self._seconds > 0

    def get(self, key: _CacheKey, load: Callable[[], bytes], count: Callable[[str], None]) -> bytes:
        while self.keeps:
            with self._lock:
                self._wipe_ended()
                entry = self._entries.get(key)
                mine = entry is None
                if entry is None:
                    entry = self._entries[key] = _Entry()
            if mine:
                count("misses")
                return self._load(key, entry, load)
            try:
                shared = entry.loaded.result()
            except CancelledError:
                continue  # who asked was interrupted, which says nothing of the key
            with self._lock:
                if self._entries.get(key) is entry:
                    count("hits")
                    return bytes(shared)
        count("misses")
        return load()

    def put(self, key: _CacheKey, unwrapped: bytes) -> None:
        if not self.keeps:
            return
        entry = _Entry()
        entry.load(unwrapped)
        with self._lock:
            self._wipe_ended()
            if key not in self._entries:
                entry.ends = time.monotonic() + self._seconds
                self._entries[key] = entry

    def forget(self, key: _CacheKey) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.loaded.done():
                self._wipe(key, entry)

    def clear(self) -> None:
        with self._lock:
            for key, entry in list(self._entries.items()):
                self._wipe(key, entry)

    def wipe_in_fork(self) -> None:
        """Overwrite the copies that a forked process has of its parent's keys, without locks, which may stay held."""
        for entry in self._entries.values():
            entry.wipe()

    def __len__(self) -> int:
        with self._lock:
            self._wipe_ended()
            return len(self._entries)

    def _load(self, key: _CacheKey, entry: _Entry, load: Callable[[], bytes]) -> bytes:
        try:
            unwrapped = load()
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            known = isinstance(error, Exception)
            entry.loaded.set_exception(error if known else CancelledError())
            raise
        with self._lock:
            entry.ends = time.monotonic() + self._seconds
            entry.load(unwrapped)
            if self._entries.get(key) is not entry:  # closed meanwhile
                entry.wipe()
        return unwrapped

    def _wipe_ended(self) -> None:
        """Forget the keys whose time is over; the lock is held."""
        now = time.monotonic()
        for key, entry in list(self._entries.items()):
            if entry.ends <= now:
                self._wipe(key, entry)

    def _wipe(self, key: _CacheKey, entry: _Entry) -> None:
        """Forget a key, and overwrite its bytes; the lock is held, under which they are copied, too."""
        del self._entries[key]
        entry.wipe()


class _State:
    """What the clients of all tables of a `CachedKms` share in this process."""

    def __init__(self, ttl_ms: int) -> None:
        self._ttl_ms = ttl_ms
        self._begin()
        _forks.follow(self)

    def after_fork(self) -> None:
        """Begin without keys: another thread may have been waiting for one, or have held a lock."""
        self.cache.wipe_in_fork()
        self._begin()

    def _begin(self) -> None:
        self.cache = _Cache(self._ttl_ms)
        self.calls = KmsCalls()
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        with self._lock:
            setattr(self.calls, name, getattr(self.calls, name) + 1)

    def snapshot(self) -> KmsCalls:
        with self._lock:
            return KmsCalls(*(getattr(self.calls, field.name) for field in fields(KmsCalls)))


class CachedKms:
    """A KMS client behind a cache of unwrapped keys, calls again while the KMS is unavailable, and counters.

    Its errors are this package's, whatever those of the client are. Many threads may use it. What is pickled are the
    client and the settings, and no key.
    """

    def __init__(
        self,
        client: KeyManagementClient,
        *,
        ttl_ms: int = CACHE_TTL_MS,
        retry: Retry | None = None,
        authenticated_wrapping: bool = False,
    ) -> None:
        """Put it in front of a client.

        Args:
            client: a KMS of this package, or any object with ``wrap_key`` and ``unwrap_key``.
            ttl_ms: how long an unwrapped key is kept in memory, in milliseconds; 0: not at all.
            retry: how a call is made again while the KMS is unavailable.
            authenticated_wrapping: for a client of your own that does not say it itself: only users of a master key
                can wrap what the client unwraps.

        Raises:
            ConfigurationError: it is not a client, or a time or number is too small.
        """
        if not isinstance(client, KeyManagementClient) or isinstance(client, type):
            raise ConfigurationError(
                f"kms must be a KMS such as Keystore(...), not {type(client).__name__}",
                "or an object of yours with wrap_key(key, wrapping_key_id) and "
                "unwrap_key(wrapped_key, wrapping_key_id)",
            )
        self._client = client.for_table(None) if isinstance(client, Kms) else client
        self._ttl_ms = ttl_ms
        self._retry = retry or Retry()
        self._authenticated_wrapping = authenticated_wrapping
        self._table: str | None = None
        self._state = _State(ttl_ms)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Wrap a key, which is kept so that reading it back costs no call.

        Raises:
            IcebergCryptoError: the KMS refused, or cannot be reached; see the error's type and `Kms.wrap_key`.
        """
        wrapped = self._call(
            "wrap", wrapping_key_id, lambda: self._client.wrap_key(key, wrapping_key_id)
        )
        self._state.cache.put(self._cache_key(wrapped, wrapping_key_id), bytes(key))
        return wrapped

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Unwrap a key, from the cache if it is there.

        Raises:
            IcebergCryptoError: the KMS refused, or cannot be reached; see the error's type and `Kms.unwrap_key`.
        """
        wrapped = bytes(wrapped_key)
        return self._state.cache.get(
            self._cache_key(wrapped, wrapping_key_id),
            lambda: self._call(
                "unwrap",
                wrapping_key_id,
                lambda: self._client.unwrap_key(wrapped, wrapping_key_id),
            ),
            self._state.count,
        )

    def forget(self, wrapped_key: bytes, wrapping_key_id: str) -> None:
        """Forget a key and overwrite its bytes, so that the next `unwrap_key` asks the KMS."""
        self._state.cache.forget(self._cache_key(bytes(wrapped_key), wrapping_key_id))

    def for_table(self, uuid: str | None) -> CachedKms:
        """Return this for the keys of one table, with the same cache and counters.

        Args:
            uuid: the table's UUID; "none" where a master key is only tried; None: not known.
        """
        bind = getattr(self._client, "for_table", None)
        bound = CachedKms.__new__(CachedKms)
        vars(bound).update(vars(self))
        bound._client = self._client if bind is None else bind(uuid)
        bound._table = uuid
        return bound

    def authenticates_wrapping(self, wrapping_key_id: str) -> bool:
        """Return whether only users of a master key can wrap what this unwraps: as the client or else the user says."""
        says = getattr(self._client, "authenticates_wrapping", None)
        return self._authenticated_wrapping if says is None else bool(says(wrapping_key_id))

    @property
    def binds_table(self) -> bool:
        """Whether wrapped keys are bound to their table's UUID, as far as the client says."""
        return bool(getattr(self._client, "binds_table", False))

    @property
    def keeps_keys(self) -> bool:
        """Whether a key that is unwrapped is in the cache afterwards."""
        return self._state.cache.keeps

    def calls(self) -> KmsCalls:
        """Return the counters, of this and all that `for_table` made of it."""
        return self._state.snapshot()

    def close(self) -> None:
        """Forget all keys and overwrite their bytes; close the client, where it can be closed."""
        self._state.cache.clear()
        close = getattr(self._client, "close", None)
        if close is not None:
            close()

    def __getstate__(self) -> dict[str, Any]:
        """Return the client and the settings; the cache stays in this process."""
        return {name: value for name, value in vars(self).items() if name != "_state"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _state=_State(state["_ttl_ms"]))

    def __str__(self) -> str:
        """The KMS and where it is, for one of ours; of another only its class: what it says may be a secret."""
        if isinstance(self._client, KmsClient):
            return str(self._client)
        kind = type(self._client)
        return f"{kind.__module__}.{kind.__qualname__}"

    def __repr__(self) -> str:
        return f"<CachedKms of {self}>"

    def _cache_key(self, wrapped: bytes, wrapping_key_id: str) -> _CacheKey:
        return wrapping_key_id, self._table, wrapped  # a KMS may refuse it to another table

    def _call(self, what: str, key_id: str, operation: Callable[[], bytes]) -> bytes:
        """Call the KMS, again where that may help; each attempt counts as a call."""
        tenacity, retry = load("tenacity", READER), self._retry
        longest = max(retry.initial_delay_ms, retry.max_delay_ms)
        doubling = tenacity.wait_exponential(
            multiplier=retry.initial_delay_ms / 1000, max=longest / 1000
        )
        attempts = tenacity.stop_after_attempt(retry.max_attempts)
        deadline = tenacity.stop_before_delay(retry.timeout_ms / 1000)
        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(KmsUnavailableError),
            stop=lambda state: (
                deadline(state)
                or (attempts(state) and not (_is_throttled(state) and retry.max_attempts > 1))
            ),
            wait=lambda state: doubling(state) * random.uniform(*_spread(state)),  # noqa: S311
            before_sleep=lambda _: self._state.count("retries"),
            reraise=True,
        )
        answer: bytes = again(self._attempt, what, key_id, operation)
        return answer

    def _attempt(self, what: str, key_id: str, operation: Callable[[], bytes]) -> bytes:
        start, outcome = time.monotonic(), "ok"
        self._state.count(f"{what}_calls")
        try:
            return _bytes(operation(), str(self), what, key_id)
        except Exception as error:
            self._state.count("errors")
            typed = self._typed(error, what, key_id)
            outcome = type(typed).__name__
            if typed is error:
                raise
            raise typed from (None if isinstance(typed, LoginFailedError) else error)
        finally:
            _LOG.debug(
                "%s: %s key %r for table %s, %d ms: %s",
                *(self, what, key_id, self._table or "(none)"),
                *((time.monotonic() - start) * 1000, outcome),
            )

    def _typed(self, error: Exception, what: str, key_id: str) -> IcebergCryptoError:
        """Return the error of a client that does not raise ours: a user's own."""
        if isinstance(error, IcebergCryptoError):
            return error
        if shows_header(error):
            return LoginFailedError(
                f"{self}, for key '{key_id}': a credential is not a valid header value",
                "look for a line break in the environment variable or the file that holds the credential",
            )
        said = f"{type(error).__name__}: {error}"
        if any(isinstance(cause, OSError) for cause in causes(error)):
            return KmsUnavailableError(
                f"{self} could not {what} with key '{key_id}': {said}",
                "check that the KMS runs and can be reached from this host",
            )
        return IcebergCryptoError(
            f"{self} could not {what} with key '{key_id}': {said}",
            "check that the key exists and is enabled, and that this login may use it",
        )


def _is_throttled(state: Any) -> bool:
    error = state.outcome.exception()
    return isinstance(error, KmsUnavailableError) and error.throttled


def _spread(state: Any) -> tuple[float, float]:
    """Return between which parts of its length a wait is; those who were refused together do not come back together."""
    return (0, 1) if _is_throttled(state) else (1 - _JITTER, 1 + _JITTER)


def _bytes(answer: object, kms: str, what: str, key_id: str) -> bytes:
    if isinstance(answer, (bytes, bytearray, memoryview)):
        return bytes(answer)
    raise IcebergCryptoError(
        f"{kms} answered {type(answer).__name__} to {what} with key '{key_id}', not bytes",
        "wrap_key and unwrap_key return bytes",
    )
