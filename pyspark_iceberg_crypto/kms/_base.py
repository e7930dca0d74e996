"""What every KMS has in common: its properties for Spark, its keys, and a trial of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto.errors import ConfigurationError, KeyDisabledError, KeyNotFoundError
from pyspark_iceberg_crypto.kms._extras import MissingExtraError

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
        state: "enabled", "disabled", "pending deletion", or the KMS's own word for another state.
        algorithm: the kind of key, in the KMS's words, such as "aes256-gcm96".
        version: the version that wraps now.
        versions: how many versions the key has; None when the KMS does not tell.
        created: when the key was made, in ISO 8601; None when the KMS does not tell.
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

    ``properties`` and ``check`` need nothing but this package. The others call the KMS from Python: they
    need the KMS's own client library, and credentials that may manage keys, which Spark's need not.

    Attributes:
        extra: what to name in ``pip install 'pyspark-iceberg-crypto[...]'`` for the client library; empty
            when none is needed.
        packages: Maven coordinates of jars that Spark needs for this KMS, beside ours.
        stock_names: Iceberg's own catalog properties that mean the same as one of this KMS's settings: the
            setting's name below ``encryption.kms.TYPE.`` by Iceberg's name.
        defaults: what a setting is in a catalog without it, by the setting's name; for those whose attribute
            has no default of its own.
    """

    extra: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    stock_names: ClassVar[Mapping[str, str]] = {}
    defaults: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this KMS. None of them is a secret."""

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
        """Tell what a key is and whether it can be used.

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

    def check(self, spark: SparkSession, catalog: str = "lake", key_id: str | None = None) -> None:
        """Have a catalog of this KMS wrap and unwrap a trial key, as creating and reading a table would.

        Args:
            spark: a session with the catalog, which was set up with this KMS.
            catalog: the catalog's name.
            key_id: the master key to try; without it, each enabled key of ``list_keys``.

        Raises:
            ConfigurationError: the catalog was set up with another KMS, or with other settings; or there
                is no key_id, and the client library that lists keys is missing.
            KeyNotFoundError: there is no such key, or no key at all.
            KeyDisabledError: the key is disabled, or all are.
            AccessDeniedError: the login failed, or Spark may not use the key.
            KmsUnavailableError: the catalog cannot reach the KMS.
            IcebergCryptoError: the key cannot be used; see the error's type.
        """
        self._check_catalog(_jvm.catalog_properties(spark, catalog), catalog)
        for name in self._enabled_keys() if key_id is None else [key_id]:
            _jvm.call(spark, "checkKey", catalog, name)

    def _check_catalog(self, properties: dict[str, str], catalog: str) -> None:
        """Check that a catalog's keys are in this KMS; either side may leave out what is a default."""
        name, own = type(self).__name__, self.properties()
        prefix = f"encryption.kms.{own.get(_TYPE, '')}."
        has = self._of_catalog(properties, prefix)
        settings = {key for key in has if key.startswith(prefix) and self._is_setting(key, prefix)}
        for key in [*own, *sorted(settings - own.keys())]:
            default = self._default(key.removeprefix(prefix))
            if own.get(key, default) != has.get(key, default):
                raise ConfigurationError(
                    f"catalog {catalog!r} has {f'{key}={has[key]}' if key in has else f'no {key}'}, "
                    f"and this {name} has {own.get(key, 'none')}",
                    f"check with the {name} that the catalog was set up with: "
                    f"configure_spark(..., catalog={catalog!r}, kms=...)",
                )

    def _of_catalog(self, properties: dict[str, str], prefix: str) -> dict[str, str]:
        """A catalog's properties, with this KMS's names for Iceberg's and the type as the catalog reads it."""
        stock = {
            prefix + to: properties[name]
            for name, to in self.stock_names.items()
            if name in properties
        }
        found = {**stock, **properties}
        if _TYPE in found:
            found[_TYPE] = found[_TYPE].strip().lower()
        return found

    def _is_setting(self, key: str, prefix: str) -> bool:
        """Whether this object would name a property if it had it, or a part of it: ``encryption-context.NAME``."""
        attribute = key.removeprefix(prefix).partition(".")[0].replace("-", "_")
        return is_dataclass(self) and attribute in {one.name for one in fields(self)}

    def _default(self, setting: str) -> str | None:
        value = self.defaults.get(setting, getattr(type(self), setting.replace("-", "_"), None))
        if isinstance(value, bool):
            return str(value).lower()
        return None if value is None else str(value)

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
            raise KeyNotFoundError(f"{name} has no key to check", "make one with create_key")
        usable = [key.key_id for key in keys if key.state == ENABLED]
        if not usable:
            states = ", ".join(f"{key.key_id!r} is {key.state}" for key in keys)
            raise KeyDisabledError(
                f"no key of {name} is enabled: {states}", "enable one, or make one with create_key"
            )
        return usable
