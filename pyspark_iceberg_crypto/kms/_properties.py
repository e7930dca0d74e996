"""A KMS client from a catalog's properties, as Spark has them; in Java: ``KmsClients`` and ``KmsProperties``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from typing import Any

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import _settings
from pyspark_iceberg_crypto.kms._base import Kms
from pyspark_iceberg_crypto.kms._cached import CACHE_TTL_MS, CachedKms, Retry
from pyspark_iceberg_crypto.kms._client import CALL_TIMEOUT_MS, client_of

_PREFIX = "encryption.kms."
_TYPE = "encryption.kms-type"
_IMPL = "encryption.kms-impl"
_OURS = "io.icebergcrypto.kms."  # the package of this project's own clients
# What Java's clients read beside the settings of their KMS. Those that Python has no use for change no key.
_GENERAL = (
    "encryption.kms.application-id",
    "encryption.kms.cache.ttl-ms",
    "encryption.kms.call-timeout-ms",
    "encryption.kms.max-calls-per-second",
    "encryption.kms.retry.max-attempts",
    "encryption.kms.retry.initial-delay-ms",
    "encryption.kms.retry.max-delay-ms",
    "encryption.kms.retry.timeout-ms",
    "encryption.kms.circuit-breaker.failures",
    "encryption.kms.circuit-breaker.delay-ms",
)
_SECRETS = (
    *("keystore.password", "pkcs11.pin", "vault.token", "vault.secret-id", "vault.jwt"),
    *("vault.cert-key", "aws.access-key-id", "aws.secret-access-key", "aws.session-token"),
)
# Iceberg's own properties that choose how Java logs in, or what it wraps with: another login would be used here.
_JAVAS = {
    "aws": ("client.factory", "client.credentials-provider", "kms.encryption-algorithm-spec"),
    "azure": ("adls.token-credential-provider",),
}


def from_properties(properties: Mapping[str, str]) -> CachedKms:
    """Make the KMS client of a catalog from its properties, with a cache and retries as they say.

    Args:
        properties: as Spark's catalog has them, without ``spark.sql.catalog.NAME.``: ``encryption.kms-type``,
            ``encryption.kms.*``, and Iceberg's own names for the same. Others do not count. Names have no case.

    Raises:
        ConfigurationError: no KMS is named, it is a Java class, or a property is wrong, unknown, would hold a secret,
            or has no meaning in Python.
    """
    given = _Properties(properties)
    kind = _kind(given)
    made = _kms(kind, given)
    return CachedKms(
        client_of(made, given.number("encryption.kms.call-timeout-ms", CALL_TIMEOUT_MS)),
        ttl_ms=given.number("encryption.kms.cache.ttl-ms", CACHE_TTL_MS, least=0),
        retry=Retry(
            max_attempts=given.number("encryption.kms.retry.max-attempts", Retry.max_attempts),
            initial_delay_ms=given.number(
                "encryption.kms.retry.initial-delay-ms", Retry.initial_delay_ms
            ),
            max_delay_ms=given.number("encryption.kms.retry.max-delay-ms", Retry.max_delay_ms),
            timeout_ms=given.number("encryption.kms.retry.timeout-ms", Retry.timeout_ms),
        ),
    )


class _Properties:
    """A catalog's properties, by names without case; no error shows a secret."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        self.names: dict[str, str] = {}
        for name, value in properties.items():
            lower = name.lower()
            if self._values.get(lower, value) != value:
                raise ConfigurationError(
                    f"Property {name} is set twice, by names that differ in case, to two values",
                    "keep one of the two",
                )
            self._values[lower], self.names[lower] = value, name

    def optional(self, name: str) -> str | None:
        value = self._values.get(name.lower())
        if value is not None and not value.strip():
            raise ConfigurationError(
                f"Property {name} is empty", "give it a value, or leave it out"
            )
        return None if value is None else value.strip()

    def either(self, ours: str, icebergs: str) -> str | None:
        value, same = self.optional(ours), self.optional(icebergs) if icebergs else None
        if value is not None and same is not None and value != same:
            raise ConfigurationError(
                f"Properties {ours} ({value}) and {icebergs} ({same}) contradict each other",
                f"they mean the same: keep one of the two; {icebergs} is Iceberg's own name for it",
            )
        return same if value is None else value

    def number(self, name: str, default: int, least: int = 1) -> int:
        value = self.optional(name)
        if value is None:
            return default
        if not value.isascii() or not value.isdigit() or int(value) < least:
            raise ConfigurationError(
                f"Property {name} is not a whole number, {least} or more: '{value}'",
                f"give one, such as {default}",
            )
        return int(value)

    def flag(self, name: str) -> bool | None:
        value = self.optional(name)
        if value is not None and value.lower() not in ("true", "false"):
            raise ConfigurationError(
                f"Property {name} is neither true nor false: '{value}'", "write true or false"
            )
        return None if value is None else value.lower() == "true"

    def below(self, prefix: str) -> dict[str, str]:
        """Return the properties below a prefix, by the rest of their names, whose case counts."""
        return {
            self.names[lower][len(prefix) :]: value
            for lower, value in self._values.items()
            if lower.startswith(prefix) and len(lower) > len(prefix)
        }


def _kind(given: _Properties) -> str:
    from pyspark_iceberg_crypto.kms import BY_TYPE

    kind, impl = given.optional(_TYPE), given.optional(_IMPL)
    if kind is not None and impl is not None:
        raise ConfigurationError(
            f"Properties {_TYPE} ({kind}) and {_IMPL} ({impl}) are both set", "keep one of the two"
        )
    if impl is not None:
        clients = {f"{_OURS}{one.capitalize()}KmsClient": one for one in BY_TYPE}
        if impl not in clients:
            raise ConfigurationError(
                f"{_IMPL}={impl} names a Java class, which Python cannot use",
                "give an object with wrap_key(key, wrapping_key_id) and unwrap_key(wrapped_key, wrapping_key_id) that"
                f" does the same as kms=, or set {_TYPE}",
            )
        return clients[impl]
    if kind is None:
        raise ConfigurationError(
            f"No KMS is configured: neither {_TYPE} nor {_IMPL} is set",
            f"set {_TYPE} to one of {', '.join(BY_TYPE)}, or give a KMS as kms=",
        )
    if kind.lower() not in BY_TYPE:
        raise ConfigurationError(
            f"Unknown KMS type '{kind}' ({_TYPE})", f"use one of {', '.join(BY_TYPE)}"
        )
    return kind.lower()


def _kms(kind: str, given: _Properties) -> Kms:
    from pyspark_iceberg_crypto.kms import BY_TYPE

    made, prefix = BY_TYPE[kind], f"{_PREFIX}{kind}."
    _check_names(kind, made, given)
    values: dict[str, Any] = {}
    for name, (field, known) in _settings.settings(made).items():
        if known.local:
            continue
        key = prefix + name.replace("_", "-")
        if field.default_factory is dict:
            value: Any = given.below(f"{key}.")
        elif isinstance(field.default, bool):
            value = given.flag(key)
        else:
            text = given.either(key, known.stock)
            value = None if text is None else known.read(text)
        if value is None and field.default is MISSING:
            raise ConfigurationError(f"Property {key} is missing", f"set it: {known.help}")
        if value is not None:
            values[name] = value
    return made(**values)


def _check_names(kind: str, kms: type[Kms], given: _Properties) -> None:
    """Refuse properties that mean nothing, something else, or would hold a secret."""
    prefix = f"{_PREFIX}{kind}."
    settings = _settings.settings(kms)
    exact = {
        prefix + name.replace("_", "-"): field
        for name, (field, known) in settings.items()
        if not known.local
    }
    parts = tuple(f"{name}." for name, field in exact.items() if field.default_factory is dict)
    refuse_secrets(given.names.values())
    for lower, name in given.names.items():
        if lower in _JAVAS.get(kind, ()) and given.optional(name) != "SYMMETRIC_DEFAULT":
            raise ConfigurationError(
                f"Property {name} chooses how Java's client logs in or wraps, and Python has no such choice",
                "leave it out; in Python the vendor's own library finds the login",
            )
        if not lower.startswith(_PREFIX) or lower in exact or lower in _GENERAL:
            continue
        if lower.startswith(parts):
            continue
        raise _unknown(kind, name, [*exact, *_GENERAL])


def refuse_secrets(names: Iterable[str]) -> None:
    """Refuse properties that would hold a secret of a KMS.

    Raises:
        ConfigurationError: one of these names is such a property's.
    """
    for name in names:
        lower = name.lower()
        if lower.startswith(_PREFIX) and lower.removeprefix(_PREFIX) in _SECRETS:
            raise ConfigurationError(
                f"Property {name} would show a secret to anyone who can see the session",
                "put it into an environment variable or a file, and name that",
            )


def _unknown(kind: str, name: str, known: list[str]) -> ConfigurationError:
    from pyspark_iceberg_crypto.kms import BY_TYPE

    others = [one for one in BY_TYPE if name.lower().startswith(f"{_PREFIX}{one}.")]
    if others and others != [kind]:
        return ConfigurationError(
            f"Property {name} belongs to KMS type {others[0]}, but the catalog's is {kind}",
            f"leave it out, or set {_TYPE}={others[0]}",
        )
    if name.lower() == f"{_PREFIX}authenticated-wrapping":
        return ConfigurationError(
            f"Property {name} is set, but KMS type {kind} already decides this",
            "leave it out: it is for your own KMS clients",
        )
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)
    return ConfigurationError(
        f"There is no catalog property {name}",
        f"did you mean {''.join(nearest)}? A misspelt one would do nothing",
    )
