"""A PKCS12 file of master keys."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.kms import _versions
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo
from pyspark_iceberg_crypto.kms._secrets import require_private
from pyspark_iceberg_crypto.kms._settings import AnyPath, about, absolute, setting
from pyspark_iceberg_crypto.kms.keystore import _atomic, _keytool
from pyspark_iceberg_crypto.kms.keystore._keys import KeystoreKeys


@dataclass(frozen=True)
class Keystore(_versions.VersionedKms):
    """A PKCS12 file of AES master keys, opened with one password.

    Names of keys are lower-cased, as PKCS12 does. Every machine that Spark runs on needs the file at this
    path, and the password in the same place. The file, and one that holds the password, must be
    accessible to their owner only (``chmod 600``), as ssh wants for its keys.

    Running Spark sessions see a new version of a key by themselves, once the file is on their hosts. Copy it to every
    host before the first of them writes: a host without the new version cannot read what it wrapped.

    The file is only ever replaced as a whole: a crash while a key is added leaves the old one, and two
    processes that add keys wait for each other.

    Raises:
        ConfigurationError: not exactly one of password_env and password_file is given.
    """

    path: AnyPath = field(metadata=about("The keystore file.", text=absolute))
    password_env: str | None = setting(
        "The name of the environment variable that holds the password."
    )
    password_file: AnyPath | None = setting(
        "Instead, a file that holds the password, on one line.", text=absolute
    )

    kms_type: ClassVar[str] = "keystore"

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
        path: AnyPath,
        keys: Sequence[str] = ("k1",),
        *,
        password_env: str | None = None,
        password_file: AnyPath | None = None,
        key_bits: int = 256,
    ) -> Keystore:
        """Make a keystore file with a new random key for each name; only its owner can read it.

        Uses the JDK's keytool. The password is never on a command line, and the file appears whole or not
        at all.

        Args:
            path: the file to make; its folder must exist.
            keys: the names (key ids) of the keys.
            password_env: the environment variable that holds the password.
            password_file: instead, a file that holds the password, on one line.
            key_bits: 128, 192 or 256.

        Raises:
            ConfigurationError: the file exists, a name or size is wrong, the password is missing or too
                short, or there is no keytool.
        """
        store = cls(path, password_env, password_file)
        names = _check_names(keys)
        _versions.check_bits(key_bits)
        target = store._absolute()
        if target.exists():
            raise _exists(target)
        if not target.parent.is_dir():
            raise ConfigurationError(f"there is no folder {target.parent}", "create it first")
        password = store._password()
        with _atomic.beside(target) as unfinished:
            for name in names:
                _keytool.generate(unfinished, name, key_bits, password)
            unfinished.chmod(0o600)
            try:
                _atomic.place(unfinished, target)
            except FileExistsError:
                raise _exists(target) from None
        return store

    def keys(self) -> list[str]:
        """Return the ids of ``list_keys()``, which every KMS has: use that one."""
        return [key.key_id for key in self.list_keys()]

    def create_key(self, name: str, *, key_bits: int = 256) -> KeyInfo:
        """Add a new random key to the file, which is made if it does not exist yet.

        Args:
            name: the key's name, which is its key id.
            key_bits: the length of the key: 128, 192 or 256.
        """
        if self._absolute().exists():
            return super().create_key(name, key_bits=key_bits)
        Keystore.create(
            self.path,
            [name],
            password_env=self.password_env,
            password_file=self.password_file,
            key_bits=key_bits,
        )
        return self.describe_key(name)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return what Spark's user needs on every host: to read the file and the password, nothing else."""
        keystore = shlex.quote(str(self._absolute()))
        lines = [
            f"# Least privilege for Spark on keys {_versions.name_list(key_ids)} of a keystore: to read two things.",
            "# A keystore has no rights for single keys: anyone who opens the file has every key in it. Keep keys",
            "# that different people may use in keystores of their own, each with its own password.",
            "# On every host, 'spark' being the user that Spark runs as:",
            f"chown spark: {keystore}",
            f"chmod 400 {keystore}",
        ]
        if self.password_file:
            secret = shlex.quote(absolute(self.password_file))
            lines += [f"chown spark: {secret}", f"chmod 400 {secret}"]
        else:
            lines += [
                f"# and the password in the environment of Spark's driver and executors: {self.password_env}"
            ]
        return "\n".join(lines) + "\n"

    def _open(self, call_seconds: float) -> KeystoreKeys:
        return KeystoreKeys(self._absolute(), self.password_env, self.password_file)

    @property
    def _name(self) -> str:
        return f"keystore {self.path}"

    def _key_id(self, name: str) -> str:
        return _check_names([name])[0]

    def _absolute(self) -> Path:
        return Path(self.path).absolute()

    def _password(self) -> _keytool.Password:
        return _keytool.Password.of(self.password_env, self.password_file)

    def _entries(self) -> dict[str, str]:
        path = self._absolute()
        if not path.is_file():
            raise ConfigurationError(
                f"there is no keystore {path}",
                "check the path; if tables use it already, restore it from a backup; otherwise"
                " create one: Keystore.create(path, keys=[...], ...)",
            )
        require_private(path, "keystore")
        return _keytool.entries(path, self._password())

    def _add(self, choose: Callable[[dict[str, list[int]]], str], bits: int) -> None:
        """Add the entry that `choose` names, given the keys there are, to a copy that replaces the file."""
        target = self._absolute().resolve()  # a link stays, and leads to the new file
        with _atomic.locked(target) as found:
            entry = choose(_versions.by_key(self._entries()))
            with _atomic.beside(target) as unfinished:
                shutil.copyfile(target, unfinished)
                _keytool.generate(unfinished, entry, bits, self._password())
                unfinished.chmod(found.st_mode & 0o777)
                with suppress(PermissionError):  # only root can give a file away
                    os.chown(unfinished, found.st_uid, found.st_gid)
                _atomic.replace(unfinished, target)

    def _info(self, key_id: str, versions: list[int], entries: dict[str, str]) -> KeyInfo:
        newest = _versions.entry(key_id, versions[-1])
        return KeyInfo(
            key_id=key_id,
            state=ENABLED,
            algorithm="AES",
            version=str(versions[-1]),
            versions=len(versions),
            created=entries[_versions.entry(key_id, versions[0])],
            detail={"path": str(self._absolute()), "entry": newest, "rotated": entries[newest]},
        )


def _check_names(keys: Sequence[str]) -> list[str]:
    """Check names of keys, and return them as PKCS12 will have them."""
    if isinstance(keys, str) or not keys:
        raise ConfigurationError("keys must be a list of names", "keys=['k1']")
    seen: dict[str, str] = {}
    for given in keys:
        name = _versions.check_name(given)
        if name.lower() in seen:
            raise ConfigurationError(
                f"{seen[name.lower()]!r} and {name!r} are the same name to a PKCS12 keystore",
                "choose names that differ by more than case",
            )
        _versions.check_name(name.lower())
        seen[name.lower()] = name
    return list(seen)


def _exists(target: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{target} already exists", "choose another path; keys are never overwritten"
    )
