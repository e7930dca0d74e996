"""Azure Key Vault and Managed HSM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, ClassVar

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError
from pyspark_iceberg_crypto.kms import _address
from pyspark_iceberg_crypto.kms._base import ENABLED, KeyInfo, Kms
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._settings import about, setting
from pyspark_iceberg_crypto.kms.azure._errors import ERRORS, headers_unlogged
from pyspark_iceberg_crypto.kms.azure._keys import VERSIONS_TO_TRY, AzureKeys
from pyspark_iceberg_crypto.kms.azure._policy import hsm_policy, vault_policy

ALGORITHMS = ("RSA-OAEP-256", "RSA-OAEP", "A128KW", "A192KW", "A256KW")
RSA_BITS = (2048, 3072, 4096)
_LOOK = "it may have been done anyway: see describe_key before you try again"
_NAME = re.compile(r"[0-9a-zA-Z-]{1,127}")
_KEY_ID = re.compile(rf"({_NAME.pattern})(?:/([0-9a-zA-Z]{{1,64}}))?/?")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ConfigurationError(
            f"versions_to_try is not a number of key versions, 1 or more: {text!r}",
            f"give one, such as {VERSIONS_TO_TRY}",
        )
    return int(text)


@dataclass(frozen=True)
class AzureKeyVault(Kms):
    """Keys of an Azure Key Vault or a Managed HSM.

    The login is Azure's DefaultAzureCredential, in Spark and here: the environment, a workload or managed
    identity, or `az login`. None of its secrets is a property.

    Raises:
        ConfigurationError: the address or the algorithm cannot be.
    """

    kms_type: ClassVar[str] = "azure"
    extra: ClassVar[str] = "azure"
    packages: ClassVar[tuple[str, ...]] = ("com.azure:azure-identity:1.18.4",)

    vault_url: str = field(
        metadata=about(
            "The vault's address, such as https://NAME.vault.azure.net or https://NAME.managedhsm.azure.net.",
            stock="azure.keyvault.url",
        )
    )
    algorithm: str = setting(
        "RSA-OAEP-256 for RSA keys; A128KW, A192KW or A256KW for AES keys of a Managed HSM.",
        "RSA-OAEP-256",
        stock="azure.keyvault.key-wrap-algorithm",
    )
    store_key_version: bool = setting(
        "Keep the key's version with each wrapped key, so that one call unwraps it whatever "
        "was rotated since. Iceberg's own Azure client then cannot read the tables.",
        False,
    )
    versions_to_try: int | None = setting(
        "How many versions of a key are tried for a wrapped key without a version, the current one first.",
        read=_count,
        implied=str(VERSIONS_TO_TRY),
        compared=False,
    )
    token_scope: str | None = setting(
        "What access tokens are for, such as https://vault.azure.net/.default; only needed "
        "where the vault is at none of Azure's own hosts."
    )

    def __post_init__(self) -> None:
        parts = _address.split(self.vault_url)
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ConfigurationError(
                f"{self.vault_url!r} is not the https address of a vault",
                "vault_url='https://NAME.vault.azure.net'",
            )
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"the algorithm {self.algorithm!r} cannot wrap keys",
                f"algorithm is one of {', '.join(ALGORITHMS)}",
            )
        if self.versions_to_try is not None:
            _count(str(self.versions_to_try))

    def create_key(
        self, name: str, *, hardware: bool = False, key_bits: int | None = None
    ) -> KeyInfo:
        """Make a key that may wrap and unwrap, and nothing else. A key that exists is never touched.

        Args:
            name: the key's name: letters, digits and hyphens.
            hardware: keep the key in the vault's HSM (a premium vault has one); a Managed HSM always does.
            key_bits: the length of an RSA key: 2048, 3072 (the default) or 4096. The algorithm determines that of an
                AES key.
        """
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{name!r} cannot be a key's name", "use letters, digits and hyphens, 127 at most"
            )
        kind, size = self._kind(hardware, key_bits)
        with self._client(name) as client:
            if self._exists(client, name):
                raise ConfigurationError(
                    f"the vault {self.vault_url} already has a key {name!r}",
                    "choose another name; rotate_key adds a version to it",
                )
            with self._typed(name, once=_LOOK):
                made = client.create_key(
                    name, kind, size=size, key_operations=["wrapKey", "unwrapKey"], retry_total=0
                )
            return self._info(name, made, versions=1)

    def list_keys(self) -> list[KeyInfo]:
        """List the keys of the vault that the algorithm can wrap with, by their names."""
        with self._client("*") as client:
            # The keys of certificates are "managed": renewing the certificate replaces them.
            names = [one.name for one in client.list_properties_of_keys() if not one.managed]
            keys = [(name, client.get_key(name)) for name in sorted(names)]
            return [self._info(name, key) for name, key in keys if self._fits(key)]

    def describe_key(self, key_id: str) -> KeyInfo:
        """Describe a key, and say whether it can be used.

        Args:
            key_id: the key's name, NAME/VERSION, or its identifier in Azure.
        """
        name, version = self._parse(key_id)
        with self._client(key_id) as client:
            key = client.get_key(name, version)
            versions = sum(1 for _ in client.list_properties_of_key_versions(name))
            return self._info(key_id, key, versions)

    def rotate_key(self, key_id: str) -> KeyInfo:
        """Add a version to a key. What older versions wrapped still unwraps while they are enabled.

        Args:
            key_id: the key's name, or its identifier in Azure.
        """
        name, version = self._parse(key_id)
        if version:
            raise NotSupportedError(
                f"{key_id!r} is one version of a key, and a version never changes",
                f"rotate {name!r}",
            )
        with self._client(key_id) as client:
            with self._typed(key_id, once=_LOOK):
                key = client.rotate_key(name, retry_total=0)
            versions = sum(1 for _ in client.list_properties_of_key_versions(name))
            return self._info(key_id, key, versions)

    def driver_policy(self, key_ids: Sequence[str]) -> str:
        """Return the role and its assignments that Spark needs for these keys, for the az command.

        Args:
            key_ids: the keys.

        Raises:
            ConfigurationError: one cannot be a key's id.
        """
        parsed = [self._parse(key_id) for key_id in key_ids]
        names = sorted({name for name, _ in parsed})
        if self._is_hsm:
            return hsm_policy(self._vault_name, names)
        finds_versions = not self.store_key_version and any(not version for _, version in parsed)
        return vault_policy(self._vault_name, names, finds_versions)

    def authenticates_wrapping(self, wrapping_key_id: str) -> bool:
        """See `Kms.authenticates_wrapping`: with RSA anyone with the public half wraps."""
        return self.wraps_with_aes

    @property
    def wraps_with_aes(self) -> bool:
        """Whether the algorithm is AES key wrap."""
        return not self.algorithm.startswith("RSA")

    def _open(self, call_seconds: float) -> AzureKeys:
        return AzureKeys(self, call_seconds)

    @property
    def _name(self) -> str:
        return f"Azure {'Managed HSM' if self._is_hsm else 'Key Vault'} at {self.vault_url}"

    @property
    def _is_hsm(self) -> bool:
        return ".managedhsm." in (_address.split(self.vault_url).hostname or "")

    @property
    def _vault_name(self) -> str:
        return (_address.split(self.vault_url).hostname or "").partition(".")[0]

    def _kind(self, hardware: bool, key_bits: int | None) -> tuple[str, int]:
        if self.algorithm.startswith("RSA"):
            if key_bits is not None and key_bits not in RSA_BITS:
                raise ConfigurationError(
                    f"an RSA key cannot have {key_bits} bits here",
                    f"key_bits is one of {', '.join(map(str, RSA_BITS))}",
                )
            return "RSA-HSM" if hardware or self._is_hsm else "RSA", key_bits or 3072
        size = int(self.algorithm[1:4])
        if key_bits not in (None, size):
            raise ConfigurationError(
                f"{self.algorithm} needs a key of {size} bits, not {key_bits}", "leave key_bits out"
            )
        if not self._is_hsm:
            raise ConfigurationError(
                f"{self.algorithm} needs an AES key, which only a Managed HSM can have, not {self.vault_url}",
                "use RSA-OAEP-256, or a vault https://NAME.managedhsm.azure.net",
            )
        return "oct-HSM", size

    def _parse(self, key_id: str) -> tuple[str, str | None]:
        """Split a key id into name and version."""
        rest = key_id
        if "://" in key_id:
            vault, _, rest = key_id.partition("/keys/")
            if _origin(vault) != _origin(self.vault_url):
                raise ConfigurationError(
                    f"the key {key_id!r} is not in the vault {self.vault_url}",
                    "name a key of this vault, or create an AzureKeyVault for the other",
                )
        found = _KEY_ID.fullmatch(rest)
        if not found:
            raise ConfigurationError(
                f"{key_id!r} cannot be a key's id",
                f"give a name, NAME/VERSION, or {self.vault_url}/keys/NAME",
            )
        return found[1], found[2]

    def _typed(self, key_id: str, once: str = "") -> AbstractContextManager[None]:
        return ERRORS.typed(f"Azure Key Vault at {self.vault_url}, key {key_id!r}", once=once)

    @contextmanager
    def _client(self, key_id: str) -> Iterator[Any]:
        with self._typed(key_id):
            # Ten tries, with their waits, are much for someone at a terminal.
            client, credential = self._connect(retry_total=3, retry_backoff_factor=0.2)
            with credential, client, headers_unlogged():
                yield client

    def _connect(self, **options: Any) -> tuple[Any, Any]:
        """Return Azure's client and the credential that it logs in with."""
        keys = load("azure.keyvault.keys", self.extra)
        credential = load("azure.identity", self.extra).DefaultAzureCredential()
        client = keys.KeyClient(
            self.vault_url,
            credential,
            verify_challenge_resource=self.token_scope is None,
            **options,
        )
        return client, credential

    def _exists(self, client: Any, name: str) -> bool:
        try:
            client.get_key(name)
        except load("azure.core.exceptions", self.extra).ResourceNotFoundError:
            return False
        return True

    def _fits(self, key: Any) -> bool:
        kind = _word(key.key_type).lower()
        if self.algorithm.startswith("RSA"):
            return kind.startswith("rsa")
        return kind.startswith("oct")

    def _info(self, key_id: str, key: Any, versions: int | None = None) -> KeyInfo:
        facts = key.properties
        detail = {
            "identifier": str(key.id),
            "operations": ", ".join(map(_word, key.key_operations or [])),
            "not before": _iso(facts.not_before),
            "expires": _iso(facts.expires_on),
            "recovery": _word(facts.recovery_level or ""),
        }
        modulus = key.key.n
        size = f" {len(modulus.lstrip(bytes(1))) * 8}" if modulus else ""
        return KeyInfo(
            key_id=key_id,
            state=_state(facts),
            algorithm=f"{_word(key.key_type)}{size}",
            version=str(facts.version),
            versions=versions,
            created=_iso(facts.created_on),
            detail={name: value for name, value in detail.items() if value},
        )


def _state(facts: Any) -> str:
    now = datetime.now(timezone.utc)
    if not facts.enabled:
        return "disabled"
    if facts.not_before and now < facts.not_before:
        return "not yet valid"
    if facts.expires_on and now >= facts.expires_on:
        return "expired"
    return ENABLED


def _word(value: Any) -> str:
    """Return a name as Azure has it: the library has enums, and text for what it does not know."""
    return str(getattr(value, "value", value))


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = _address.split(url)
    return parts.scheme, parts.hostname, parts.port or 443
