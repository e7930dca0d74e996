"""Where master keys are kept, told to a catalog; and what a catalog did with its KMS."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import _jvm, _keytool
from pyspark_iceberg_crypto.errors import ConfigurationError

KEY_BITS = (128, 192, 256)


@runtime_checkable
class Kms(Protocol):
    """What ``configure_spark(kms=...)`` takes."""

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this KMS. None of them is a secret."""
        ...


@dataclass(frozen=True)
class Keystore:
    """A PKCS12 file of AES master keys, opened with one password.

    Names of keys are lower-cased, as PKCS12 does. Every machine that Spark runs on needs the file at this
    path, and the password in the same place.

    Attributes:
        path: the file.
        password_env: the name of the environment variable that holds the password.
        password_file: instead, a file whose first line is the password.

    Raises:
        ConfigurationError: not exactly one of password_env and password_file is given.
    """

    path: str | os.PathLike[str]
    password_env: str | None = None
    password_file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if not os.fspath(self.path):
            raise ConfigurationError("the keystore's path is empty", "Keystore('keys.p12', ...)")
        if bool(self.password_env) == bool(self.password_file):
            raise ConfigurationError(
                "a Keystore needs one of password_env and password_file",
                "name the environment variable or the file that holds the password",
            )

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        keys: Sequence[str] = ("k1",),
        *,
        password_env: str | None = None,
        password_file: str | os.PathLike[str] | None = None,
        key_bits: int = 256,
    ) -> Keystore:
        """Make a keystore file with a new random key for each name; only its owner can read it.

        Uses the JDK's keytool. The password is never on a command line, and the file appears whole or not
        at all.

        Args:
            path: the file to make; its folder must exist.
            keys: the names (key ids) of the keys.
            password_env: the environment variable that holds the password.
            password_file: instead, a file whose first line is the password.
            key_bits: 128, 192 or 256.

        Raises:
            ConfigurationError: the file exists, a name or size is wrong, the password is missing or too
                short, or there is no keytool.
        """
        store = cls(path, password_env, password_file)
        names = _check_names(keys)
        if key_bits not in KEY_BITS:
            raise ConfigurationError(
                f"an AES key cannot have {key_bits} bits", "key_bits is 128, 192 or 256"
            )
        target = store._absolute()
        if target.exists():
            raise _exists(target)
        if not target.parent.is_dir():
            raise ConfigurationError(f"there is no folder {target.parent}", "make it first")
        password = store._password()
        # In the same folder, so that the finished file is moved, not copied, into its place.
        with tempfile.TemporaryDirectory(prefix=".keystore-", dir=target.parent) as folder:
            unfinished = Path(folder) / target.name
            for name in names:
                _keytool.generate(unfinished, name, key_bits, password)
            unfinished.chmod(0o600)
            _place(unfinished, target)
        return store

    def properties(self) -> dict[str, str]:
        """Return the catalog properties that name this keystore."""
        prefix = "encryption.kms.keystore"
        found = {"encryption.kms-type": "keystore", f"{prefix}.path": str(self._absolute())}
        if self.password_env:
            found[f"{prefix}.password-env"] = self.password_env
        if self.password_file:
            found[f"{prefix}.password-file"] = str(Path(self.password_file).absolute())
        return found

    def keys(self) -> list[str]:
        """List the names of the keys in the file.

        Raises:
            ConfigurationError: there is no such file, its password is missing or wrong, or it is no
                keystore.
        """
        path = self._absolute()
        if not path.is_file():
            raise ConfigurationError(
                f"there is no keystore {path}", "make one: Keystore.create(path, keys=[...], ...)"
            )
        return _keytool.names(path, self._password())

    def check(self, spark: SparkSession, catalog: str = "lake", key_id: str | None = None) -> None:
        """Have the catalog wrap and unwrap a trial key, as creating and reading a table would.

        Args:
            spark: a session with the catalog.
            catalog: the catalog's name.
            key_id: the master key to try; without it, each key of this keystore.

        Raises:
            KeyNotFoundError: the catalog's KMS has no such key.
            IcebergCryptoError: it has, but it cannot be used; see the error's type.
        """
        for name in self.keys() if key_id is None else [key_id]:
            _jvm.call(spark, "checkKey", catalog, name)

    def _absolute(self) -> Path:
        return Path(self.path).absolute()

    def _password(self) -> _keytool.Password:
        return _keytool.Password.of(self.password_env, self.password_file)


@dataclass(frozen=True)
class KmsMetrics:
    """What a catalog asked of its KMS since it was loaded.

    Attributes:
        kms: the kind of KMS.
        wrap_calls: calls that wrapped a key.
        unwrap_calls: calls that unwrapped one.
        hits: keys that came from the cache instead.
        misses: keys that were not in the cache.
        errors: calls that failed.
        wrap_ms: milliseconds spent in wrap calls, together.
        unwrap_ms: milliseconds spent in unwrap calls, together.
        cached_keys: keys in the cache now.
    """

    kms: str
    wrap_calls: int
    unwrap_calls: int
    hits: int
    misses: int
    errors: int
    wrap_ms: float
    unwrap_ms: float
    cached_keys: int


def kms_metrics(spark: SparkSession, catalog: str = "lake") -> KmsMetrics:
    """Read the counters of a catalog's KMS client.

    Raises:
        ConfigurationError: it is not a catalog of ours, or it has no KMS.
    """
    found = json.loads(_jvm.call(spark, "kmsMetrics", catalog))
    return KmsMetrics(**{name: found[name] for name in KmsMetrics.__dataclass_fields__})


def _check_names(keys: Sequence[str]) -> list[str]:
    """Check names of keys, and return them as PKCS12 will have them."""
    if isinstance(keys, str) or not keys:
        raise ConfigurationError("keys must be a list of names", "keys=['k1']")
    seen: dict[str, str] = {}
    for name in keys:
        if not isinstance(name, str) or not name.strip() or name != name.strip():
            raise ConfigurationError(
                f"{name!r} cannot be a key's name", "a name is text without blanks around it"
            )
        if name.lower() in seen:
            raise ConfigurationError(
                f"{seen[name.lower()]!r} and {name!r} are one name to a PKCS12 keystore",
                "choose names that differ by more than case",
            )
        seen[name.lower()] = name
    return list(seen)


def _place(unfinished: Path, target: Path) -> None:
    """Move a finished file into place, atomically, and never over another."""
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    try:
        os.link(unfinished, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        if target.exists():
            raise _exists(target) from None
        unfinished.rename(target)


def _exists(target: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{target} exists already", "choose another path; keys are never overwritten"
    )
