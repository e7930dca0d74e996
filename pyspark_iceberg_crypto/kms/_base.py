"""What all KMSs have in common: catalog properties, keys wrapped and managed, and a check that Spark can use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import Field, asdict, dataclass, field
from functools import cached_property
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    KeyDisabledError,
    KeyNotFoundError,
)
from pyspark_iceberg_crypto.kms import _client, _settings
from pyspark_iceberg_crypto.kms._extras import MissingExtraError

if TYPE_CHECKING:  # keys are managed without Spark
    from pyspark.sql import SparkSession

ENABLED = "enabled"
_TYPE = "encryption.kms-type"


@runtime_checkable
class KmsSettings(Protocol):
    """What ``configure_spark(kms=...)`` takes: any object that knows its catalog properties."""

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this KMS. None of them is a secret."""
        ...


@dataclass(frozen=True)
class KeyInfo:
    """A master key, as its KMS describes it. The key itself stays in the KMS.

    Attributes:
        key_id: what to write into a table's ``encryption.key-id``.
        state: "enabled", "disabled", "pending deletion", or whatever else the KMS calls it.
        algorithm: the kind of key, as the KMS calls it, such as "aes256-gcm96".
        version: the version that wraps now.
        versions: how many versions the key has; None if the KMS does not say.
        created: when the key was made, in ISO 8601; None if the KMS does not say.
        detail: further facts by their names, such as the key's ARN or path.
    """

    key_id: str
    state: str
    algorithm: str
    version: str
    versions: int | None = None
    created: str | None = None
    detail: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return asdict(self)


class Kms(ABC):
    """A place where master keys are kept.

    ``properties`` and ``check`` need nothing but this package. The others call the KMS from Python, without Spark: they
    need the KMS's own client library. To wrap and unwrap keys is what Spark's login may do, too; the methods that
    manage keys need credentials that may, which Spark's need not.

    A KMS is a dataclass whose fields are its settings, see `kms._settings`. Its methods raise the errors that
    are listed here, where a program that it runs counts as a client library.

    Attributes:
        kms_type: its ``encryption.kms-type``.
        extra: what to name in ``pip install 'pyspark-iceberg-crypto[...]'`` for the client library; empty
            when none is needed.
        packages: Maven coordinates of jars that Spark needs for this KMS, beside ours.
    """

    kms_type: ClassVar[str] = ""
    extra: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Add the settings to the class's docstring."""
        super().__init_subclass__(**more)
        told = [
            f"    {name}: {value.metadata['setting'].help}"
            for name, value in vars(cls).items()
            if isinstance(value, Field) and value.metadata
        ]
        if told:
            cls.__doc__ = "\n".join([cleandoc(cls.__doc__ or ""), "", "Attributes:", *told])

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this KMS. None of them is a secret."""
        return {_TYPE: self.kms_type, **_settings.properties(self, self._prefix)}

    @property
    def _prefix(self) -> str:
        return f"encryption.kms.{self.kms_type}."

    @abstractmethod
    def create_key(self, name: str) -> KeyInfo:
        """Make a new master key. A key that exists is never overwritten.

        Args:
            name: the key's name.

        Raises:
            ConfigurationError: the name is wrong or taken, or the client library is missing.
            AccessDeniedError: the login failed, or may not create keys.
            KmsUnavailableError: the KMS cannot be reached.
        """

    @abstractmethod
    def list_keys(self) -> list[KeyInfo]:
        """List the keys that can be a table's master key, by their ids.

        Raises:
            ConfigurationError: the client library is missing.
            AccessDeniedError: the login failed, or may not list keys.
            KmsUnavailableError: the KMS cannot be reached.
        """

    @abstractmethod
    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key, and say whether it can be used.

        Raises:
            KeyNotFoundError: there is no such key.
            ConfigurationError: the client library is missing.
            AccessDeniedError: the login failed, or may not look at the key.
            KmsUnavailableError: the KMS cannot be reached.
        """

    @abstractmethod
    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key, under the same id. What older versions wrapped still unwraps.

        Raises:
            KeyNotFoundError: there is no such key.
            KeyDisabledError: the key's state forbids it.
            NotSupportedError: this kind of key cannot be rotated.
            ConfigurationError: the client library is missing.
            AccessDeniedError: the login failed, or may not rotate the key.
            KmsUnavailableError: the KMS cannot be reached.
        """

    @abstractmethod
    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return the least-privilege policy that Spark needs for these keys, as text to paste."""

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Wrap a key with the newest version of a master key, byte for byte as Spark's client of this KMS does.

        Args:
            key: the key, such as a table's KEK: 16, 24 or 32 bytes.
            wrapping_key_id: the master key's id, as a table's ``encryption.key-id``.

        Raises:
            KeyNotFoundError: there is no such master key.
            KeyDisabledError: its state forbids it.
            NotSupportedError: this kind of key cannot wrap.
            ConfigurationError: a setting is wrong, the client library is missing, or wrapped keys are bound to a
                table and this is not the client of one: see `for_table`.
            AccessDeniedError: the login failed, or may not use the key.
            KmsUnavailableError: the KMS cannot be reached.
        """
        return self._kms_client.wrap_key(key, wrapping_key_id)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Unwrap a key, whichever version of the master key wrapped it.

        Args:
            wrapped_key: what `wrap_key`, or Spark's client of this KMS, returned.
            wrapping_key_id: the master key's id.

        Raises:
            BadWrappedKeyError: the key was changed, or another master key, KMS or table has it.
            IcebergCryptoError: as of `wrap_key`.
        """
        return self._kms_client.unwrap_key(wrapped_key, wrapping_key_id)

    def for_table(self, uuid: str | None) -> _client.KmsClient:
        """Return a client for the keys of one table: with the same login, its calls are bound to the table's UUID.

        Only AWS KMS with ``"{table-uuid}"`` in its encryption context and Google Cloud KMS with
        ``additional_authenticated_data="table-uuid"`` bind keys to it; for the others it makes no difference.

        Args:
            uuid: the table's UUID, as its metadata has it; "none" where a master key is only tried; None: not known.
        """
        return self._kms_client.for_table(uuid)

    def authenticates_wrapping(self, wrapping_key_id: str) -> bool:
        """Return whether only users of a master key can wrap what `unwrap_key` takes.

        No for asymmetric keys, whose public half wraps. Answered from the settings, without a call.
        """
        return True

    @property
    def binds_table(self) -> bool:
        """Whether these settings bind wrapped keys to their table's UUID."""
        return False

    @abstractmethod
    def _open(self, call_seconds: float) -> _client.MasterKeys:
        """Prepare the way to the master keys; the first call logs in.

        Args:
            call_seconds: how long one request may take.
        """

    @cached_property
    def _kms_client(self) -> _client.KmsClient:
        return _client.client_of(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings alone: a login stays in its process."""
        return {name: value for name, value in vars(self).items() if name != "_kms_client"}

    @property
    def _name(self) -> str:
        """Which KMS it is and where, for errors, without a secret."""
        return str(self)

    def check(self, spark: SparkSession, catalog: str = "lake", key_id: str | None = None) -> None:
        """Have a catalog of this KMS wrap and unwrap a trial key, as creating and reading a table would.

        Args:
            spark: a session with the catalog, which was set up with this KMS.
            catalog: the catalog's name.
            key_id: the master key to try; without it, each enabled key of ``list_keys`` that new tables of the catalog
                may have.

        Raises:
            ConfigurationError: the catalog was set up with another KMS, or with other settings; or there
                is no key_id, and the client library that lists keys is missing.
            KeyNotFoundError: there is no such key, or no key at all.
            KeyDisabledError: the key is disabled, or all are.
            AccessDeniedError: the login failed, Spark may not use the key, or the catalog does not allow it.
            KmsUnavailableError: the catalog cannot reach the KMS.
            IcebergCryptoError: the key cannot be used; see the error's type.
        """
        from pyspark_iceberg_crypto.jvm import _jvm

        self._check_catalog(_jvm.catalog_properties(spark, catalog), catalog)
        if key_id is not None:
            _jvm.run(spark, "check_key", catalog=catalog, key_id=key_id)
            return
        keys = self._enabled_keys()
        tried = [
            _jvm.run(spark, "check_key", catalog=catalog, key_id=key, pass_over=True)
            for key in keys
        ]
        if not any(tried):
            raise AccessDeniedError(
                f"catalog {catalog!r} allows no enabled key of {type(self).__name__}",
                f"name one, and the error says why: check(spark, key_id={keys[0]!r})",
            )

    def _check_catalog(self, properties: dict[str, str], catalog: str) -> None:
        """Check that a catalog's keys are in this KMS; either side may leave out what is a default."""
        own, has, known, name = self.properties(), dict(properties), {}, type(self).__name__
        if _TYPE in has:
            has[_TYPE] = has[_TYPE].strip().lower()
        for setting, (one, told) in _settings.settings(type(self)).items():
            key = self._prefix + setting.replace("_", "-")
            if not told.compared:
                own.pop(key, None)
                continue
            known[key] = told.implied or _settings.as_text(one.default)
            if told.stock in has:
                has.setdefault(key, has[told.stock])
        # A setting may have parts: encryption-context.NAME.
        prefixes = tuple(f"{key}." for key in known)
        more = {key for key in has if key in known or key.startswith(prefixes)} - own.keys()
        for key in [*own, *sorted(more)]:
            default = known.get(key)
            if own.get(key, default) != has.get(key, default):
                raise ConfigurationError(
                    f"catalog {catalog!r} has {f'{key}={has[key]}' if key in has else f'no {key}'}, "
                    f"and this {name} has {own.get(key, 'none')}",
                    f"check with the {name} that the catalog was set up with: "
                    f"configure_spark(..., catalog={catalog!r}, kms=...)",
                )

    def _enabled_keys(self) -> list[str]:
        name = type(self).__name__
        try:
            keys = self.list_keys()
        except MissingExtraError as error:
            raise ConfigurationError(
                f"which key of {name} to check? {error.message}, which would list them",
                f"name the key: check(spark, key_id='...'); or {error.hint}",
            ) from error
        if not keys:
            raise KeyNotFoundError(
                f"{name} has no key to check",
                "check that this is the right KMS; for new tables, create one with create_key",
            )
        usable = [key.key_id for key in keys if key.state == ENABLED]
        if not usable:
            states = ", ".join(f"{key.key_id!r} is {key.state}" for key in keys)
            raise KeyDisabledError(
                f"no key of {name} is enabled: {states}",
                "enable one, or create one with create_key",
            )
        return usable
