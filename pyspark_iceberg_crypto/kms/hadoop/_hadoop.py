"""Master keys in Hadoop KMS, or Apache Ranger KMS, which has the same REST interface."""

from __future__ import annotations

import getpass
import json
import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlencode

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KeyNotFoundError,
)
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._client import require_bare_name
from pyspark_iceberg_crypto.kms._settings import AnyPath, about, absolute, setting
from pyspark_iceberg_crypto.kms.hadoop._errors import ERRORS, FORGET, Refused
from pyspark_iceberg_crypto.kms.hadoop._keys import LONGEST_NAME, HadoopKeys

_TIMEOUT_SECONDS = 30
_AT_ONCE = 50  # keys, whose names become one URL
_EXAMPLE = "kms://https@kms.example.com:9600/kms"
_URI = re.compile(
    r"kms://(?P<scheme>https?)@(?P<hosts>[\w.-]+(;[\w.-]+)*|\[[\da-fA-F:]+])"
    r"(?P<port>:\d{1,5})?(?P<path>(/\w[\w.-]*)*)/?",
    re.ASCII,
)
_USER_NAME = re.compile(r"[\w.@/-]+", re.ASCII)


@dataclass(frozen=True)
class HadoopKms(Kms):
    """Keys in Hadoop KMS or Apache Ranger KMS.

    Spark logs in by a user's name (simple authentication), or as Hadoop does: by Kerberos or a delegation token.
    This class itself manages keys by a user's name only; with Kerberos use Hadoop's command, ``hadoop key``.

    Raises:
        ConfigurationError: the URI is not that of a Hadoop KMS, or is http to another machine.
    """

    uri: str = field(
        metadata=about(
            f"As in hadoop.security.key.provider.path, such as {_EXAMPLE}; several hosts are separated by semicolons."
        )
    )
    user: str | None = setting(
        "The user that simple authentication names; without it Spark uses the login of its process."
    )
    ca_file: AnyPath | None = setting(
        "A PEM file of the authorities to trust; without it Java's own (Python: its own).",
        text=absolute,
    )
    allow_http: bool = setting("Allow an http address other than this machine's own.", False)

    kms_type: ClassVar[str] = "hadoop"

    def __post_init__(self) -> None:
        if self.user and not _USER_NAME.fullmatch(self.user):
            raise ConfigurationError(
                f"{self.user!r} is not a user's name",
                "give the name as the KMS's access control lists have it",
            )
        for server in self._servers():
            if not self.allow_http and not _address.is_encrypted(server):
                raise ConfigurationError(
                    f"http would send keys to {server.hostname} in plaintext",
                    "use kms://https@, or allow_http=True if something else encrypts the connection",
                )

    def create_key(self, name: str, *, key_bits: int = 256) -> KeyInfo:
        """Make a key. One that exists is left alone.

        Args:
            name: the key's name; the KMS's own keystore has none with capital letters.
            key_bits: the length of the key: 128, 192 or 256.
        """
        require_bare_name(name, "Hadoop KMS", LONGEST_NAME)
        if key_bits not in (128, 192, 256):
            raise ConfigurationError(f"AES has no keys of {key_bits} bits", "128, 192 or 256")
        given = {"name": name, "length": key_bits}
        self._ask("POST", "keys", f"make key {name!r}", given)
        return self.describe_key(name)

    def list_keys(self) -> list[KeyInfo]:
        """List the keys, by their names."""
        doing, found = "list keys", []
        names = sorted(map(str, self._ask("GET", "keys/names", doing)))
        for start in range(0, len(names), _AT_ONCE):
            asked = urlencode([("key", name) for name in names[start : start + _AT_ONCE]])
            found += self._ask("GET", f"keys/metadata?{asked}", doing)
        with self._typed(doing):
            return [_info(metadata) for metadata in found if metadata]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key: its length and its versions."""
        require_bare_name(key_id, "Hadoop KMS", LONGEST_NAME)
        doing = f"describe key {key_id!r}"
        metadata = self._ask("GET", f"key/{key_id}/_metadata", doing)
        if not metadata:
            raise KeyNotFoundError(
                f"{self} has no key {key_id!r}",
                f"for a new table, create it: create_key({key_id!r}); if tables use it, restore it",
            )
        with self._typed(doing):
            return _info(metadata)

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key, which Hadoop calls rolling it. What older versions wrapped still unwraps.

        Each server keeps encrypted data keys for later. The one that rotates throws away those of older versions, and
        the others are asked to.

        Raises:
            NotSupportedError: the key was rotated, but another server cannot be told.
        """
        self.describe_key(key_id)  # the KMS answers 500 for more than a missing key
        self._ask("POST", f"key/{key_id}", f"rotate key {key_id!r}", {})
        for server in self._servers()[1:]:
            doing = (
                f"tell {server.hostname!r} to forget older data keys, after {key_id!r} was rotated"
            )
            self._ask("POST", f"key/{key_id}/{FORGET}", doing, {}, server=server)
        return self.describe_key(key_id)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return the access control lists that Spark's driver and executors need for these keys (kms-acls.xml)."""
        if isinstance(key_ids, str) or not key_ids:
            raise ConfigurationError("key_ids must be a list of names", "driver_policy(['sales'])")
        lines = ["<!-- What Spark needs: in kms-acls.xml of each server of the KMS. -->"]
        user = self.user or "spark"
        for name in key_ids:
            require_bare_name(name, "Hadoop KMS", LONGEST_NAME)
            lines += [_acl(f"key.acl.{name}.{op}", user) for op in ("GENERATE_EEK", "DECRYPT_EEK")]
        lines.append("<!-- And so that nobody sees a key itself: -->")
        lines.append(_acl("hadoop.kms.acl.GET", " "))
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"Hadoop KMS at {self.uri}"

    def _typed(self, doing: str) -> Any:
        return ERRORS.typed(f"{self} did not {doing}", user=self._user, uri=self.uri)

    @property
    def _user(self) -> str:
        return self.user or getpass.getuser()

    def _servers(self) -> list[SplitResult]:
        parts = _URI.fullmatch(self.uri)
        if not parts:
            raise ConfigurationError(f"{self.uri!r} is not the URI of a Hadoop KMS", _EXAMPLE)
        scheme, port, path = parts["scheme"], parts["port"] or "", parts["path"]
        hosts = parts["hosts"].split(";")
        return [_address.split(f"{scheme}://{host}{port}{path}") for host in hosts]

    def _ask(
        self,
        method: str,
        path: str,
        doing: str,
        body: Any = None,
        *,
        server: SplitResult | None = None,
    ) -> Any:
        """Make a request to one server, by default the first, and return its answer."""
        server = server or self._servers()[0]
        with self._typed(doing):
            return self._request(server, method, path, body, _TIMEOUT_SECONDS)

    def _request(
        self, server: SplitResult, method: str, path: str, body: Any, seconds: float
    ) -> Any:
        """Make a request to a server, and return its answer."""
        connection = self._connection(server, seconds)
        try:
            user = urlencode({"user.name": self._user})
            connection.request(
                method,
                f"{server.path}/v1/{path}{'&' if '?' in path else '?'}{user}",
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json", "Accept": "application/json"},
            )
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status not in (200, 201):
            raise Refused(answer.status, _parsed(text))
        return json.loads(text) if text else None

    def _connection(self, server: SplitResult, seconds: float) -> HTTPConnection:
        host = server.hostname or ""
        if server.scheme == "http":
            return HTTPConnection(host, server.port, timeout=seconds)
        ca_file = os.fspath(self.ca_file) if self.ca_file else None
        context = ssl.create_default_context(cafile=ca_file)
        return HTTPSConnection(host, server.port, timeout=seconds, context=context)

    def _open(self, call_seconds: float) -> HadoopKeys:
        return HadoopKeys(self, call_seconds)


def _parsed(text: str) -> Any:
    """Read the answer to a request that was refused; a page in HTML is not an answer."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _info(metadata: dict[str, Any]) -> KeyInfo:
    """Turn the KMS's description of a key into ours. Versions count from 1, as in the header of wrapped keys."""
    versions = int(metadata["versions"])
    created = datetime.fromtimestamp(int(metadata["created"]) / 1000, timezone.utc)
    return KeyInfo(
        key_id=str(metadata["name"]),
        state=ENABLED,
        algorithm=f"{metadata['cipher']}, {metadata['length']} bits",
        version=str(versions),
        versions=versions,
        created=created.isoformat(),
    )


def _acl(name: str, value: str) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"
